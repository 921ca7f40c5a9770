"""An index of a million sentences on this machine, compared with FAISS at equal recall.

    python benchmarks/index.py FOLDER MODEL corpus          write the sentences, from TERCET_DATA
    python benchmarks/index.py FOLDER MODEL rate MINUTES    measure how fast they are embedded
    python benchmarks/index.py FOLDER MODEL embed MINUTES   embed; repeat until done
    python benchmarks/index.py FOLDER MODEL measure ROWS [tercet|ivf|hnsw]...   default: all
    python benchmarks/index.py FOLDER MODEL table           print all measurements

The corpus is every distinct sentence of Quora, STS, SST and NLI files up to 300 characters, filled
up with rule-based variants (typing errors, negation, numbers) and shuffled; the last thousand are
the queries. Each library is measured in a process of its own: building from vectors in a file,
opening, and answering one query after the other with ids and texts. The FAISS setting is increased
until its recall is at least that of Tercet's index.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from records import record

from tercet.data.changes.negation import negation
from tercet.data.changes.numbers import numbers
from tercet.data.changes.typing_errors import typos
from tercet.data.files import find_file, open_bytes
from tercet.data.stream import TextFile
from tercet.embed.schema import Identity, vectors_schema
from tercet.embed.staged import Staged, stage
from tercet.model import load
from tercet.search.exact import top_of_blocks
from tercet.search.index import Index
from tercet.search.lance_store import write_index

ROWS, QUERIES, TOP = 1_000_000, 1_000, 10
LONGEST = 300
LINKS = 16
TERCET = "Tercet (Lance)"
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
        "measure": measure,
        "table": table,
        "tercet": tercet_alone,
        "faiss": faiss_alone,
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
    root = Path(os.environ["TERCET_DATA"])
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


def measure(folder: Path, model: str, rows: str, *libraries: str) -> None:
    parts = staged_rows(folder).vectors()
    if sum(map(len, parts)) < int(rows):
        raise SystemExit(f"{rows} rows are not embedded yet.")
    corpus = np.concatenate(parts)[: int(rows)]
    texts = (folder / "corpus.txt").read_text("utf-8").splitlines()[ROWS:]
    queries = load(model).embed(texts)
    np.save(folder / "queries.npy", queries)
    np.save(folder / "vectors.npy", corpus)
    cut = range(0, len(corpus), 16_384)
    blocks = ((np.arange(n, min(n + 16_384, len(corpus))), corpus[n : n + 16_384]) for n in cut)
    np.save(folder / "truth.npy", top_of_blocks(blocks, queries, TOP)[1][:, -1])
    del corpus
    chosen = libraries or ("tercet", "ivf", "hnsw")
    if "tercet" in chosen:
        alone(folder, model, "tercet", rows)
    for kind in ("ivf", "hnsw"):
        if kind in chosen:
            alone(folder, model, "faiss", rows, kind, str(recall_of_tercet(folder, int(rows))))


def recall_of_tercet(folder: Path, rows: int) -> float:
    """The recall of its last measurement at this size."""
    last = [
        entry for entry in noted(folder) if entry.get("library") == TERCET and entry["rows"] == rows
    ][-1]
    return float(last["recall"])


def alone(folder: Path, model: str, *step: str) -> None:
    """Run a step in a process of its own, so that its memory is measured separately."""
    subprocess.run([sys.executable, __file__, str(folder), model, *step], check=True)


def tercet_alone(folder: Path, model: str, rows: str, opened: str = "") -> None:
    target = folder / f"index-{rows}"
    if opened:
        index = Index.open(target)
        measure_tercet(folder, index, opened)
        return
    staged = staged_rows(folder)
    schema = vectors_schema(
        staged.schema.remove(staged.schema.get_field_index("vector")), Identity.of(load(model))
    )
    shutil.rmtree(target, ignore_errors=True)
    begin = time.perf_counter()
    left = int(rows)

    def batches() -> Iterator[Any]:
        nonlocal left
        for batch in staged.batches():
            if left > 0:
                yield batch.slice(0, left).cast(schema)
                left -= len(batch)

    write_index(str(target), batches(), schema)
    index = Index.open(target)
    index.optimise()
    seconds = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    built = {"rows": int(rows), "build_s": round(seconds, 1), "disk_mb": size // 10**6}
    built["build_rss_mb"] = resident()
    alone(folder, model, "tercet", rows, json.dumps(built))


def measure_tercet(folder: Path, index: Index, built: str) -> None:
    """Recall, latency and memory of an opened index."""
    queries, truth = np.load(folder / "queries.npy"), np.load(folder / "truth.npy")
    index.nearest(queries[:1], top=TOP)
    times, correct = [], 0
    for query, least in zip(queries, truth, strict=True):
        begin = time.perf_counter()
        hits = index.nearest(query[None], top=TOP)[0]
        times.append(time.perf_counter() - begin)
        correct += min(sum(hit.score >= least - 1e-5 for hit in hits), TOP)
    setting = index.setting
    how = "exact, in memory"
    if setting is not None:
        how = f"{setting.kind}, {setting.nprobes} of {setting.parts} parts, refine {setting.refine}"
    note(folder, measurement(TERCET, how, times, correct, built))


def faiss_alone(
    folder: Path, model: str, rows: str, kind: str, target: str, opened: str = ""
) -> None:
    import faiss

    file = str(folder / "faiss")
    if opened:
        measure_faiss(folder, faiss.read_index(file), kind, float(target), opened)
        return
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    width = vectors.shape[1]
    begin = time.perf_counter()
    if kind == "ivf":
        parts = int(len(vectors) ** 0.5)
        flat = faiss.IndexFlatIP(width)
        index = faiss.IndexIVFFlat(flat, width, parts, faiss.METRIC_INNER_PRODUCT)
        sample = min(len(vectors), 64 * parts)
        chosen = np.random.default_rng(0).choice(len(vectors), sample, replace=False)
        index.train(vectors[np.sort(chosen)])
    else:
        index = faiss.IndexHNSWFlat(width, LINKS, faiss.METRIC_INNER_PRODUCT)
    for start in range(0, len(vectors), 65_536):
        index.add(np.ascontiguousarray(vectors[start : start + 65_536]))
    seconds = time.perf_counter() - begin
    faiss.write_index(index, file)
    size = Path(file).stat().st_size // 10**6
    built = {"rows": int(rows), "build_s": round(seconds, 1), "disk_mb": size}
    built["build_rss_mb"] = resident()
    alone(folder, model, "faiss", rows, kind, target, json.dumps(built))


def measure_faiss(folder: Path, index: Any, kind: str, target: float, built: str) -> None:
    """Increase the setting until the recall reaches the target."""
    queries, truth = np.load(folder / "queries.npy"), np.load(folder / "truth.npy")
    name, how = "FAISS IVF", "{width} of {parts} parts"
    settings = _doubling(2, index.nlist) if kind == "ivf" else _doubling(16, 1024)
    if kind == "hnsw":
        name, how = "FAISS HNSW", "M {parts}, ef {width}"
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
        if correct >= target * TOP * len(queries):
            break
    setting = how.format(width=width, parts=index.nlist if kind == "ivf" else LINKS)
    note(folder, measurement(name, setting, times, correct, built))


def _doubling(first: int, last: int) -> Iterator[int]:
    width = float(first)
    while width < last:
        yield round(width)
        width *= 2**0.5
    yield last


def measurement(
    name: str, how: str, times: list[float], correct: int, built: str
) -> dict[str, Any]:
    milliseconds = np.array(times) * 1000
    return {
        "step": "search",
        "library": name,
        "how": how,
        **json.loads(built),
        "recall": round(correct / (TOP * len(times)), 4),
        "p50_ms": round(float(np.percentile(milliseconds, 50)), 2),
        "p99_ms": round(float(np.percentile(milliseconds, 99)), 2),
        "rss_mb": resident(),
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
        "rows": "rows", "library": "library", "how": "how", "build_s": "build s",
        "disk_mb": "disk MB", "recall": "recall@10", "p50_ms": "p50 ms", "p99_ms": "p99 ms",
        "build_rss_mb": "build RSS MB", "rss_mb": "search RSS MB",
    }  # fmt: skip
    newest = {
        (entry["rows"], entry["library"]): entry for entry in measured if entry["step"] == "search"
    }
    in_order = sorted(newest.values(), key=lambda entry: entry["rows"])
    record(
        "index",
        columns=list(columns.values()),
        rows=[[entry[key] for key in columns] for entry in in_order],
        values=values,
        packages=("torch", "onnxruntime", "pylance", "pyarrow", "numpy", "faiss-cpu"),
        encoder=model,
    )


if __name__ == "__main__":
    main()
