"""Closest pairs on this machine, end to end, against sentence-transformers' paraphrase_mining.

    python benchmarks/mine.py [ENCODER] [EXPORTED]   10,000 sentences: time, memory, pairs
    python benchmarks/mine.py curve FILE MODEL [SENTENCES]...   the first 10,000 to 160,000 of FILE

Every run is a process of its own, so that memory is measured separately; libraries alternate, and
medians are compared. Time is from a list of sentences to the pairs, with the model loaded. Tercet
runs the encoder and, if EXPORTED is given, that export of it. Sentences are the distinct first
sentences of quora-dev's pairs, from TERCET_DATA. The curve is end to end too, on the first lines of
a text file, such as the corpus of benchmarks/index.py: embedding time grows linearly with the
number of sentences, comparing time with its square.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from real_data import real_data
from records import record

from tercet.data.examples import read_texts
from tercet.data.files import find_file
from tercet.progress import Progress, silent

SENTENCES, TOP, RUNS = 10_000, 1_000, 3
SIZES = (10_000, 20_000, 40_000, 80_000, 160_000)
PACKAGES = ("torch", "onnxruntime", "numpy", "pyarrow", "sentence-transformers")


def sentences(count: int, name: str = "cs224n/quora-dev.csv") -> list[str]:
    (texts,) = read_texts(find_file(real_data() / name), ["sentence1"])
    return list(dict.fromkeys(filter(None, texts)))[:count]


def tercet_alone(folder: str, count: str) -> dict[str, Any]:
    from tercet.data.stream import TextFile
    from tercet.model import load
    from tercet.search.mine import mine

    model = load(folder, device="cpu")
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "texts.txt"
        path.write_text("\n".join(sentences(int(count))) + "\n", "utf-8")
        begin = time.perf_counter()
        mined = mine(TextFile.open(path), model, Path(work) / "work", top=TOP)
        rows = [row for batch in mined.batches() for row in batch.to_pylist()]
        seconds = time.perf_counter() - begin
    pairs = [(int(row["first_id"]) - 1, int(row["second_id"]) - 1) for row in rows]
    return measurement(seconds, pairs, [row["score"] for row in rows])


def peer_alone(folder: str, count: str) -> dict[str, Any]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import paraphrase_mining

    model = SentenceTransformer(folder, device="cpu")
    texts = sentences(int(count))
    begin = time.perf_counter()
    rows = paraphrase_mining(model, texts, max_pairs=TOP, top_k=100)[:TOP]
    seconds = time.perf_counter() - begin
    pairs = [(min(i, j), max(i, j)) for _, i, j in rows]
    return measurement(seconds, pairs, [score for score, _, _ in rows])


def measurement(seconds: float, pairs: list[Any], scores: list[float]) -> dict[str, Any]:
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in status if line.startswith("VmHWM"))
    megabytes = int(peak.split()[1]) // 1000
    return {"seconds": seconds, "rss_mb": megabytes, "pairs": pairs, "scores": scores}


def alone(*step: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, *step], check=True, stdout=subprocess.PIPE, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(encoder: str = "all-minilm-l6-v2", exported: str = "") -> None:
    from tercet.weights import resolve

    folder = str(resolve(encoder))
    runs: dict[str, list[dict[str, Any]]] = {"tercet": [], "sentence-transformers": []}
    if exported:
        runs["tercet, exported"] = []
    for _ in range(RUNS):
        for name, step, used in (
            ("tercet", "tercet", folder),
            ("tercet, exported", "tercet", exported),
            ("sentence-transformers", "peer", folder),
        ):
            if used:
                runs[name].append(alone(step, used, str(SENTENCES)))
                print(f"{name}: {runs[name][-1]['seconds']:.2f} s")
    seconds = {
        name: statistics.median(run["seconds"] for run in own_runs)
        for name, own_runs in runs.items()
    }
    peer = runs["sentence-transformers"][0]
    rows = []
    for name, own_runs in runs.items():
        memory = max(run["rss_mb"] for run in own_runs)
        shared = len({*map(tuple, own_runs[0]["pairs"])} & {*map(tuple, peer["pairs"])})
        ratio = seconds["sentence-transformers"] / seconds[name]
        rows.append([name, f"{seconds[name]:.2f}", f"{ratio:.2f}", memory, f"{shared} of {TOP}"])
    record(
        "mine",
        columns=["library", "seconds", "speed-up", "resident MB", "pairs shared with the peer"],
        rows=rows,
        values={"sentences": f"{SENTENCES:,}", "pairs": f"{TOP:,}"},
        packages=PACKAGES,
        encoder=encoder,
    )


def curve(file: str, model: str, *sizes: str) -> None:
    """Seconds and resident memory as the corpus doubles."""
    rows = []
    for size in sizes or map(str, SIZES):
        run = alone("prefix", file, model, size)
        whole, embedding = run["seconds"], run["embedding"]
        cells = [f"{int(size):,}", f"{whole:.1f}", f"{embedding:.1f}", f"{whole - embedding:.1f}"]
        rows.append([*cells, str(run["rss_mb"])])
        print("\t".join(rows[-1]), file=sys.stderr, flush=True)
    columns = ["sentences", "seconds", "embedding", "comparing", "resident MB"]
    record("curve", columns=columns, rows=rows, packages=PACKAGES, encoder=model)


def prefix_alone(file: str, folder: str, count: str) -> dict[str, Any]:
    from tercet.data.stream import TextFile
    from tercet.model import load
    from tercet.search.mine import mine

    model = load(folder, device="cpu")
    ended = {"embedding": 0.0}
    with tempfile.TemporaryDirectory() as work, Path(file).open(encoding="utf-8") as lines:
        path = Path(work) / "texts.txt"
        path.write_text("".join(islice(lines, int(count))), "utf-8")
        begin = time.perf_counter()

        @contextmanager
        def timed(phase: str) -> Iterator[Progress]:
            yield silent
            ended[phase] = time.perf_counter() - begin

        pairs = mine(TextFile.open(path), model, Path(work) / "work", top=TOP, phases=timed)
        rows = [row for batch in pairs.batches() for row in batch.to_pylist()]
        seconds = time.perf_counter() - begin
    scores = [row["score"] for row in rows]
    return measurement(seconds, [], scores) | {"embedding": ended["embedding"]}


def main() -> None:
    arguments = sys.argv[1:]
    steps = {"tercet": tercet_alone, "peer": peer_alone, "prefix": prefix_alone}
    if arguments and arguments[0] in steps:
        print(json.dumps(steps[arguments[0]](*arguments[1:])))
    elif arguments and arguments[0] == "curve":
        curve(*arguments[1:])
    else:
        compare(*arguments)


if __name__ == "__main__":
    main()
