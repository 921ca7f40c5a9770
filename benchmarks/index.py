"""An index of a million sentences on this machine, compared with FAISS at equal recall.

    python benchmarks/index.py FOLDER MODEL corpus          write the sentences, from TERCET_DATA
    python benchmarks/index.py FOLDER MODEL rate MINUTES    measure how fast they are embedded
    python benchmarks/index.py FOLDER MODEL embed MINUTES   embed; repeat until done
    python benchmarks/index.py FOLDER MODEL prepare ROWS [WIDTH]           queries and true nearest
    python benchmarks/index.py FOLDER MODEL build LIBRARY ROWS [WIDTH]
    python benchmarks/index.py FOLDER MODEL search LIBRARY ROWS [WIDTH]
    python benchmarks/index.py FOLDER MODEL table           print all measurements

The corpus is every distinct sentence of Quora, STS, SST and NLI files up to 300 characters, filled
up with rule-based variants (typing errors, negation, numbers) and shuffled; the last thousand are
the queries. LIBRARY is tercet, tercet-0.1 (the ANN index that version 0.1 built), ivf or hnsw (of
FAISS). With WIDTH, vectors are cut to that many numbers and brought to length 1 again. A library
builds from vectors in a file, and searches in another process, one query after the other, all of
them at least twice; Tercet answers with ids and texts. Search Tercet's index first: the FAISS
setting is increased until its recall is at least that.
"""

from __future__ import annotations

import contextlib
import csv
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from real_data import real_data
from records import record

from tercet.data.changes.negation import negation
from tercet.data.changes.numbers import numbers
from tercet.data.changes.typing_errors import typos
from tercet.data.files import find_file, open_bytes
from tercet.data.stream import VECTOR, TextFile
from tercet.embed.schema import Identity, vector_array, vectors_of, vectors_schema
from tercet.embed.staged import PART, Staged, stage
from tercet.model import load
from tercet.search import ann
from tercet.search.exact import top_of_blocks
from tercet.search.index import Index
from tercet.search.lance_store import write_index
from tercet.specs import Floats
from tercet.vectors import unit

ROWS, QUERIES, TOP = 1_000_000, 1_000, 10
LONGEST = 300
LINKS = 16
NAMES = {
    "tercet": "Tercet (Lance)",
    "tercet-0.1": "Tercet 0.1 (Lance)",
    "ivf": "FAISS IVF",
    "hnsw": "FAISS HNSW",
}
HEADED = (
    "cs224n/quora-dev.csv",
    "cs224n/quora-train.csv",
    "cs224n/quora-positives.csv",
    "cs224n/sts-train.csv",
    "cs224n/sts-dev.csv",
    "cs224n/ids-sst-train.csv",
    "cs224n/ids-sst-dev.csv",
)
BARE = ("nli/pairs.tsv", "nli/triples.tsv")


class TimeUpError(Exception):
    """The time is used up."""


def main() -> None:
    folder, model, step, *rest = sys.argv[1:]
    steps: dict[str, Callable[..., None]] = {
        "corpus": write_corpus,
        "rate": rate,
        "embed": embed,
        "prepare": prepare,
        "build": build,
        "search": search,
        "table": table,
    }
    steps[step](Path(folder), model, *rest)


def write_corpus(folder: Path, model: str) -> None:
    texts = dict.fromkeys(text for text in sentences() if 0 < len(text) <= LONGEST)
    real = list(texts)
    draw = random.Random(0)
    for seed in range(10):
        for text in draw.sample(real, len(real)):
            if len(texts) >= ROWS + QUERIES:
                break
            changed = (typos, negation, numbers)[seed % 3](text, seed)
            if changed is not None:
                texts.setdefault(changed)
    shuffled = draw.sample(list(texts), ROWS + QUERIES)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.txt").write_text("\n".join(shuffled) + "\n", "utf-8")
    print(f"{len(real):,} sentences and {ROWS + QUERIES - len(real):,} rule-based variants")


def sentences() -> Iterator[str]:
    root = real_data()
    csv.field_size_limit(2**31 - 1)
    for name in (*HEADED, *BARE):
        with open_bytes(find_file(root / name)) as file:
            lines = (line.decode("utf-8") for line in file)
            if name in BARE:
                rows: Any = (line.split("\t") for line in lines)
                places = [0, 1]
            else:
                rows = csv.reader(lines, delimiter="\t")
                header = next(rows)
                places = [n for n, cell in enumerate(header) if cell.startswith("sentence")]
            for row in rows:
                for place in places:
                    if place < len(row):
                        yield " ".join(row[place].split())


def rate(folder: Path, model: str, minutes: str) -> None:
    """Embed from the first row and record the rate."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        rows, seconds = embed_into(Path(work) / "work", folder, model, minutes)
    content = {"step": "rate", "rows": rows, "seconds": round(seconds, 1), "rss_mb": resident()}
    note(folder, content)
    print(f"{rows:,} rows embedded; {rows / seconds:.0f} per second")


def embed(folder: Path, model: str, minutes: str) -> None:
    rows, _ = embed_into(folder / "work", folder, model, minutes)
    print(f"{rows:,} more rows embedded")


def embed_into(work: Path, folder: Path, model: str, minutes: str) -> tuple[int, float]:
    """The number of embedded rows, and the seconds that they took."""
    file = TextFile.open(folder / "corpus.txt")
    loaded = load(model)
    identity = Identity.of(loaded)
    counts: list[int] = []
    begin = time.perf_counter()

    def note_progress(done: int, total: int) -> None:
        counts.append(done)
        if time.perf_counter() - begin > 60 * float(minutes):
            raise TimeUpError

    with contextlib.suppress(TimeUpError):
        stage(file, loaded, identity, work, skip_empty=True, progress=note_progress)
    seconds = time.perf_counter() - begin
    return (counts[-1] - counts[0] if counts else 0), seconds


def staged_rows(folder: Path) -> Staged:
    """The rows that are embedded so far."""
    files = tuple(sorted((folder / "work").glob("part-*.arrow")))
    with pa.memory_map(str(files[0])) as source:
        return Staged(files, pa.ipc.open_file(source).schema)


@dataclass(frozen=True)
class Case:
    """What is searched, and where its files are."""

    folder: Path
    rows: int
    width: int

    @classmethod
    def of(cls, folder: Path, rows: str, width: str | None) -> Case:
        full = staged_rows(folder).schema.field(VECTOR).type.list_size
        return cls(folder, int(rows), int(width or full))

    def file(self, name: str) -> Path:
        return self.folder / f"{name}-{self.rows}-{self.width}"

    def cut(self, vectors: Floats) -> Floats:
        """The first numbers of vectors [n, full width], of length 1."""
        if self.width == vectors.shape[1]:
            return vectors
        return unit(vectors[:, : self.width])

    def blocks(self) -> Iterator[tuple[pa.RecordBatch, Floats]]:
        """Parts of the embedded rows, and their vectors [n, width]."""
        left = self.rows
        for batch in staged_rows(self.folder).batches():
            part = batch.slice(0, left)
            left -= len(part)
            if len(part):
                yield part, self.cut(vectors_of(part.column(VECTOR)))


def prepare(folder: Path, model: str, rows: str, width: str | None = None) -> None:
    """Write the queries' vectors, and the product of each with the last of its true nearest."""
    case = Case.of(folder, rows, width)
    texts = (folder / "corpus.txt").read_text("utf-8").splitlines()[ROWS:]
    queries = case.cut(load(model).embed(texts))
    starts = range(0, case.rows, PART)
    blocks = (
        (np.arange(start, start + len(vectors)), vectors)
        for start, (_, vectors) in zip(starts, case.blocks(), strict=True)
    )
    truth = top_of_blocks(blocks, queries, TOP)[1][:, -1]
    np.savez(case.file("queries").with_suffix(".npz"), queries=queries, truth=truth)


def build(folder: Path, model: str, library: str, rows: str, width: str | None = None) -> None:
    case = Case.of(folder, rows, width)
    target = case.file(library)
    shutil.rmtree(target, ignore_errors=True)
    if library.startswith("tercet"):
        seconds = build_tercet(case, model, target, library)
    else:
        seconds = build_faiss(case, library, target)
    files = [path for path in target.rglob("*") if path.is_file()] or [target]
    size = sum(path.stat().st_size for path in files)
    content = {"build_s": round(seconds, 1), "disk_mb": size // 10**6, "build_rss_mb": resident()}
    case.file(f"{library}.built").write_text(json.dumps(content), "utf-8")
    print(content)


def build_tercet(case: Case, model: str, target: Path, library: str) -> float:
    """Seconds, from vectors in files to an index that is ready."""
    if library == "tercet-0.1":
        ann.kind_of = lambda width: ann.PLAIN
    columns = staged_rows(case.folder).schema
    columns = columns.remove(columns.get_field_index(VECTOR))
    identity = Identity.of(load(model))._replace(width=case.width)
    schema = vectors_schema(columns, identity)
    begin = time.perf_counter()
    batches = (
        pa.RecordBatch.from_arrays(
            [*(part.column(name) for name in columns.names), vector_array(vectors)], schema=schema
        )
        for part, vectors in case.blocks()
    )
    write_index(str(target), batches, schema)
    Index.open(target).optimise()
    return time.perf_counter() - begin


def build_faiss(case: Case, kind: str, target: Path) -> float:
    import faiss

    vectors = np.concatenate([vectors for _, vectors in case.blocks()])
    begin = time.perf_counter()
    if kind == "ivf":
        parts = int(len(vectors) ** 0.5)
        flat = faiss.IndexFlatIP(case.width)
        index = faiss.IndexIVFFlat(flat, case.width, parts, faiss.METRIC_INNER_PRODUCT)
        sample = min(len(vectors), 64 * parts)
        chosen = np.random.default_rng(0).choice(len(vectors), sample, replace=False)
        index.train(vectors[np.sort(chosen)])
    else:
        index = faiss.IndexHNSWFlat(case.width, LINKS, faiss.METRIC_INNER_PRODUCT)
    for start in range(0, len(vectors), 65_536):
        index.add(np.ascontiguousarray(vectors[start : start + 65_536]))
    seconds = time.perf_counter() - begin
    faiss.write_index(index, str(target))
    return seconds


def search(folder: Path, model: str, library: str, rows: str, width: str | None = None) -> None:
    case = Case.of(folder, rows, width)
    prepared = np.load(case.file("queries").with_suffix(".npz"))
    queries, truth = prepared["queries"], prepared["truth"]
    if library.startswith("tercet"):
        found = search_tercet(case.file(library), queries, truth)
    else:
        found = search_faiss(case, library, queries, truth)
    built = json.loads(case.file(f"{library}.built").read_text("utf-8"))
    content = {"step": "search", "rows": case.rows, "width": case.width, "library": library}
    content |= built | found | {"rss_mb": resident()}
    note(folder, content)
    print(content)


def search_tercet(target: Path, queries: Floats, truth: Floats) -> dict[str, Any]:
    """Recall and latency of an opened index: of all queries again, when what they read is in memory
    as with FAISS, and the median of the first time."""
    index = Index.open(target)
    index.nearest(queries[:1], top=TOP)
    passes = []
    for _ in range(2):
        times, correct = [], 0
        for query, least in zip(queries, truth, strict=True):
            begin = time.perf_counter()
            hits = index.nearest(query[None], top=TOP)[0]
            times.append(time.perf_counter() - begin)
            correct += min(sum(hit.score >= least - 1e-5 for hit in hits), TOP)
        passes.append(times)
    setting = index.setting
    how = "exact, in memory"
    if setting is not None:
        how = f"{setting.kind}, {setting.nprobes} of {setting.parts} parts, refine {setting.refine}"
    first = round(1000 * float(np.median(passes[0])), 2)
    return measurement(how, passes[1], correct) | {"first_p50_ms": first}


def search_faiss(case: Case, kind: str, queries: Floats, truth: Floats) -> dict[str, Any]:
    """Recall and latency of the narrowest setting whose recall is at least Tercet's."""
    import faiss

    wanted = TOP * len(queries) * recall_of_tercet(case)
    index = faiss.read_index(str(case.file(kind)))
    settings = _doubling(2, index.nlist) if kind == "ivf" else _doubling(16, 1024)
    for width in settings:
        if kind == "ivf":
            index.nprobe = width
        else:
            index.hnsw.efSearch = width
        times, correct = [], 0
        for query, least in zip(queries, truth, strict=True):
            begin = time.perf_counter()
            scores, _ = index.search(query[None], TOP)
            times.append(time.perf_counter() - begin)
            correct += int((scores >= least - 1e-5).sum())
        if correct >= wanted:
            break
    how = f"{width} of {index.nlist} parts" if kind == "ivf" else f"M {LINKS}, ef {width}"
    return measurement(how, times, correct)


def recall_of_tercet(case: Case) -> float:
    """The recall of its last search of these vectors."""
    key = ("tercet", case.rows, case.width)
    recalls = [
        entry["recall"]
        for entry in noted(case.folder)
        if entry["step"] == "search" and (entry["library"], entry["rows"], entry["width"]) == key
    ]
    return float(recalls[-1])


def _doubling(first: int, last: int) -> Iterator[int]:
    width = float(first)
    while width < last:
        yield round(width)
        width *= 2**0.5
    yield last


def measurement(how: str, times: list[float], correct: int) -> dict[str, Any]:
    milliseconds = np.array(times) * 1000
    return {
        "how": how,
        "recall": round(correct / (TOP * len(times)), 4),
        "p50_ms": round(float(np.percentile(milliseconds, 50)), 2),
        "p99_ms": round(float(np.percentile(milliseconds, 99)), 2),
    }


def resident() -> int:
    """The peak resident memory of this process so far, in MB."""
    (line,) = (
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return int(line.split()[1]) // 1000


def note(folder: Path, content: dict[str, Any]) -> None:
    with (folder / "measured.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")


def noted(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "measured.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def table(folder: Path, model: str) -> None:
    """The last measurement of each library and size, as Markdown."""
    measured = noted(folder)
    values = {"sentences": f"{ROWS + QUERIES:,}"}
    for last in [entry for entry in measured if entry["step"] == "rate"][-1:]:
        values["rate"] = f"{last['rows'] / last['seconds']:,.0f}"
        values |= {"rate rows": f"{last['rows']:,}", "rate memory": f"{last['rss_mb']} MB"}
    columns = {
        "rows": "rows", "width": "width", "library": "library", "how": "how", "build_s": "build s",
        "disk_mb": "disk MB", "recall": "recall@10", "p50_ms": "p50 ms", "p99_ms": "p99 ms",
        "build_rss_mb": "build RSS MB", "rss_mb": "search RSS MB",
    }  # fmt: skip
    newest = {
        (entry["rows"], -entry["width"], list(NAMES).index(entry["library"])): entry
        for entry in measured
        if entry["step"] == "search"
    }
    in_order = [newest[key] for key in sorted(newest)]
    full = max(entry["width"] for entry in in_order)
    for entry in in_order:
        if entry["rows"] == ROWS:
            name = entry["library"] + ("" if entry["width"] == full else f" {entry['width']}")
            shown = {
                "recall": "recall", "p50": "p50_ms", "first": "first_p50_ms", "memory": "rss_mb",
                "disk": "disk_mb",
            }  # fmt: skip
            values |= {
                f"{name} {word}": f"{entry[key]:,}" for word, key in shown.items() if key in entry
            }
            again = [
                f"{other['p50_ms']}"
                for other in measured
                if other["step"] == "search"
                and "first_p50_ms" in other
                and all(other[key] == entry[key] for key in ("rows", "width", "library", "how"))
            ]
            values |= {f"{name} runs": ", ".join(again)} if again else {}
    record(
        "index",
        columns=list(columns.values()),
        rows=[
            [(entry | {"library": NAMES[entry["library"]]})[key] for key in columns]
            for entry in in_order
        ],
        values=values,
        packages=("torch", "onnxruntime", "pylance", "pyarrow", "numpy", "faiss-cpu"),
        encoder=Path(model).name,
    )


if __name__ == "__main__":
    main()
