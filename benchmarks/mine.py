"""Closest pairs on this machine, end to end, against sentence-transformers' paraphrase_mining.

    python benchmarks/mine.py [ENCODER] [EXPORTED]   10,000 sentences: time, memory, the pairs
    python benchmarks/mine.py curve FOLDER           vectors of 10,000 to 160,000 sentences

Every run is a process of its own, so that its memory is its own; libraries take turns, and medians
are compared. Time is from a list of sentences to the pairs in hand, with the model loaded. Tercet
runs the encoder as it is and, where EXPORTED is given, as that export of it. Sentences are the
first of quora-dev's pairs, distinct, from TERCET_DATA. The curve takes the vectors that
benchmarks/index.py embedded into FOLDER: embedding grows with the sentences, comparing with their
square.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tercet.data.examples import read_texts
from tercet.data.files import find_file

SENTENCES, TOP, RUNS = 10_000, 1_000, 3
SIZES = (10_000, 20_000, 40_000, 80_000, 160_000)


def sentences(count: int, name: str = "cs224n/quora-dev.csv") -> list[str]:
    (texts,) = read_texts(find_file(Path(os.environ["TERCET_DATA"]) / name), ["sentence1"])
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
        found = mine(TextFile.open(path), model, Path(work) / "work", top=TOP)
        rows = [row for batch in found.batches() for row in batch.to_pylist()]
        seconds = time.perf_counter() - begin
    pairs = [(int(row["first_id"]) - 1, int(row["second_id"]) - 1) for row in rows]
    return told(seconds, pairs, [row["score"] for row in rows])


def peer_alone(folder: str, count: str) -> dict[str, Any]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import paraphrase_mining

    model = SentenceTransformer(folder, device="cpu")
    texts = sentences(int(count))
    begin = time.perf_counter()
    rows = paraphrase_mining(model, texts, max_pairs=TOP, top_k=100)[:TOP]
    seconds = time.perf_counter() - begin
    return told(seconds, [(min(i, j), max(i, j)) for _, i, j in rows], [s for s, _, _ in rows])


def told(seconds: float, pairs: list[Any], scores: list[float]) -> dict[str, Any]:
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in status if line.startswith("VmHWM"))
    megabytes = int(peak.split()[1]) // 1000
    return {"seconds": seconds, "rss_mb": megabytes, "pairs": pairs, "scores": scores}


def alone(*step: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, *step], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


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
        name: statistics.median(run["seconds"] for run in found) for name, found in runs.items()
    }
    peer = runs["sentence-transformers"][0]
    print("| library | seconds | times the peer | resident MB | pairs shared with the peer |")
    print("|---|---|---|---|---|")
    for name, found in runs.items():
        memory = max(run["rss_mb"] for run in found)
        shared = len({*map(tuple, found[0]["pairs"])} & {*map(tuple, peer["pairs"])})
        ratio = seconds["sentence-transformers"] / seconds[name]
        print(f"| {name} | {seconds[name]:.2f} | {ratio:.2f} | {memory} | {shared} of {TOP} |")


def curve(folder: str) -> None:
    """Seconds of comparing, and resident memory, as the corpus doubles."""
    print("| sentences | comparing s | resident MB |")
    print("|---|---|---|")
    for size in SIZES:
        found = alone("grown", folder, str(size))
        print(f"| {size:,} | {found['seconds']:.2f} | {found['rss_mb']} |")


def grown_alone(folder: str, count: str) -> dict[str, Any]:
    import pyarrow as pa

    from tercet.search.pairs import blocks_of, closest_pairs
    from tercet.search.staged import Staged

    files = sorted((Path(folder) / "work").glob("part-*.arrow"))
    with pa.memory_map(str(files[0])) as source:
        schema = pa.ipc.open_file(source).schema
    parts, left = [], int(count)
    for part in Staged(tuple(files), schema).vectors():
        if left > 0:
            parts.append(part[:left])
            left -= len(part)
    with tempfile.TemporaryDirectory() as work:
        begin = time.perf_counter()
        closest_pairs(blocks_of(parts), Path(work), top=TOP)
        return told(time.perf_counter() - begin, [], [])


def main() -> None:
    given = sys.argv[1:]
    steps = {"tercet": tercet_alone, "peer": peer_alone, "grown": grown_alone}
    if given and given[0] in steps:
        print(json.dumps(steps[given[0]](*given[1:])))
    elif given and given[0] == "curve":
        curve(*given[1:])
    else:
        compare(*given)


if __name__ == "__main__":
    main()
