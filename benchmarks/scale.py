"""Embedding at scale on this machine: the local engine by size, and Ray with processes killed.

    python benchmarks/scale.py [ENCODER] [ROWS]

The local engine embeds ROWS / 100, ROWS / 10 and ROWS rows, each in a process of its own, and the
rate and peak memory are printed. Then a Ray cluster of three nodes on this machine, one processor
each, embeds the ROWS rows, and a node is killed after a third; the rate is compared with the local
engine's. Finally a driver is killed after half of ROWS / 10 rows and its command is run again.
Sentences are those of quora-dev if TERCET_DATA contains it, otherwise the project's own sample: the
first five words of each, with its row number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from records import record

from embed import sentences
from tercet.text.tokenizer import Tokenizer
from tercet.weights import resolve

ROWS = 10_000
SMALL_PART = 128
WORDS = 5
SAMPLE = 2_000
PACKAGES = ("torch", "ray", "pyarrow")
DATA = "the first five words of quora-dev's questions, each with its row number"
LOCAL = """
import sys, time
from tercet.model import load
from tercet.embed.local import embed_file
from tercet.embed.schema import Identity
source, out, folder = sys.argv[1:]
model = load(folder, device="cpu")
start = time.perf_counter()
embed_file(source, out, model=model)
print(time.perf_counter() - start)
"""
RAY = """
import json, sys
from tercet.embed import ray_corpus
from tercet.embed.ray_engine import embed_with_ray
part, arguments = int(sys.argv[1]), json.loads(sys.argv[2])
ray_corpus.SMALLEST = part
# Ray replaces sys.stdout.
show = lambda *values: print(*values, file=sys.__stdout__, flush=True)
embed_with_ray(**arguments, progress=show, log=show)
"""


def write_corpus(path: Path, rows: int) -> None:
    """Write rows with a unique id and a unique sentence."""
    known = sentences()
    starts = [" ".join(text.split()[:WORDS]) for text in known]
    texts = [f"{starts[row % len(starts)]} {row}" for row in range(rows)]
    pq.write_table(pa.table({"id": [f"r{row}" for row in range(rows)], "text": texts}), path)


def tokens(path: Path, folder: Path) -> float:
    """The mean number of tokens per sentence, including special tokens."""
    texts = pq.read_table(path).column("text").to_pylist()[:SAMPLE]
    encoded = Tokenizer.load(folder).encode(texts, max_tokens=128)
    return len(encoded.ids) / len(texts)


def local(source: Path, out: Path, folder: Path) -> tuple[float, float]:
    """Seconds of embedding and writing, and the peak memory of the process in MB."""
    command = [sys.executable, "-c", LOCAL, str(source), str(out), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return float(printed), usage.ru_maxrss / 1024


def start_driver(part: int, source: Path, out: Path, folder: Path, address: str) -> Any:
    arguments = {
        "source": str(source),
        "out": str(out),
        "model": str(folder),
        "column": "text",
        "address": address,
    }
    return subprocess.Popen(
        [sys.executable, "-c", RAY, str(part), json.dumps(arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def progress_of(driver: Any) -> Any:
    """Finished rows and all rows, as the driver prints them."""
    for line in driver.stdout:
        words = line.split()
        if len(words) == 2 and all(word.isdecimal() for word in words):
            yield int(words[0]), int(words[1])


def kill_a_node(cluster: Any, node: Any, source: Path, out: Path, folder: Path) -> dict[str, float]:
    """Embed with Ray and kill a node after a third: times and rows at each event."""
    start = time.perf_counter()
    events: dict[str, float] = {}
    driver = start_driver(2048, source, out, folder, cluster.address)
    for done, total in progress_of(driver):
        now = time.perf_counter() - start
        if done and "first" not in events:
            events |= {"first": now, "first rows": done}
        if done >= total / 3 and "killed" not in events:
            cluster.remove_node(node, allow_graceful=False)
            events |= {"killed": now, "killed rows": done}
    assert driver.wait() == 0
    return events | {"all": time.perf_counter() - start}


def kill_the_driver(cluster: Any, source: Path, out: Path, folder: Path) -> dict[str, int]:
    """The number of parts, of parts finished before the kill, and of those written again."""
    driver = start_driver(SMALL_PART, source, out, folder, cluster.address)
    for done, total in progress_of(driver):
        if done >= total / 2:
            driver.kill()
            break
    driver.wait()
    time.sleep(2.0)
    work = out.with_name(out.name + ".work") / "ray"
    before = {path: path.stat().st_mtime_ns for path in work.glob("0*.json")}
    driver = start_driver(SMALL_PART, source, out, folder, cluster.address)
    after = before
    for done, total in progress_of(driver):
        if done == total:
            after = {path: path.stat().st_mtime_ns for path in before}
    assert driver.wait() == 0
    again = sum(after[path] != before[path] for path in before)
    return {"parts": -(-total // SMALL_PART), "finished": len(before), "again": again}


def compare(ours: Path, theirs: Path) -> tuple[int, int, float]:
    """Rows, ids that are missing or out of place, and the largest difference of vectors."""
    tables = pq.read_table(ours), pq.read_table(theirs)
    ids, expected = (table.column("id").to_pylist() for table in tables)
    wrong = abs(len(ids) - len(expected))
    wrong += sum(a != b for a, b in zip(ids, expected, strict=False))
    flat = [table.column("vector").combine_chunks().flatten().to_numpy() for table in tables]
    return len(ids), wrong, float(np.abs(flat[0] - flat[1]).max())


def main() -> None:
    os.environ["TERCET_PRECISION"] = "fp32"
    folder = resolve(sys.argv[1] if len(sys.argv) > 1 else "all-minilm-l6-v2")
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else ROWS
    with tempfile.TemporaryDirectory() as scratch:
        measure(folder, rows, Path(scratch))


def measure(folder: Path, rows: int, scratch: Path) -> None:
    from ray.cluster_utils import Cluster

    corpora = {count: scratch / f"{count}.parquet" for count in (rows // 100, rows // 10, rows)}
    outs = {count: scratch / f"local-{count}.parquet" for count in corpora}
    write_corpus(corpora[rows], rows)
    seconds, lines = 0.0, []
    for count, source in corpora.items():
        write_corpus(source, count)
        seconds, memory = local(source, outs[count], folder)
        size = outs[count].stat().st_size / 1e6
        cells = [f"{seconds:.1f}", f"{count / seconds:.0f}", f"{memory:.0f}", f"{size:.1f}"]
        lines.append([f"{count:,}", *cells])
    keep = partial(record, packages=PACKAGES, encoder=f"{folder.name}, fp32", data=DATA)
    keep(
        "local",
        columns=["rows", "seconds", "rows/s", "peak memory MB", "output MB"],
        rows=lines,
        values={"tokens": f"{tokens(corpora[rows], folder):.1f}"},
    )
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    node = cluster.add_node(num_cpus=1)
    try:
        events = kill_a_node(cluster, node, corpora[rows], scratch / "ray.parquet", folder)
        differences = compare(scratch / "ray.parquet", outs[rows])
        small = rows // 10
        parts = kill_the_driver(cluster, corpora[small], scratch / "again.parquet", folder)
        later_differences = compare(scratch / "again.parquet", outs[small])
    finally:
        cluster.shutdown()
    steady = (events["killed rows"] - events["first rows"]) / (events["killed"] - events["first"])
    after = (rows - events["killed rows"]) / (events["all"] - events["killed"])
    events_in_words = [
        ["rows", f"{rows:,}"],
        ["seconds, whole command", f"{events['all']:.1f}"],
        [
            "seconds until the first part (start of Ray's processes, torch, the model)",
            f"{events['first']:.1f}",
        ],
        ["rows/s with three nodes", f"{steady:.0f}"],
        ["rows done when a node was killed (SIGKILL)", f"{events['killed rows']:,.0f}"],
        ["rows/s after that", f"{after:.0f}"],
        ["ratio of Ray to the local engine, whole command", f"{seconds / events['all']:.2f}"],
    ]
    keep("node", columns=["", ""], rows=[*events_in_words, *in_words(differences)])
    keep(
        "driver",
        columns=["", ""],
        rows=[
            ["parts finished when it was killed", parts["finished"]],
            ["embedded again", parts["again"]],
            *in_words(later_differences),
        ],
        values={"rows": f"{small:,}", "parts": parts["parts"], "part": SMALL_PART},
    )


def in_words(differences: tuple[int, int, float]) -> list[list[object]]:
    rows, wrong, largest = differences
    return [
        ["rows in the output", f"{rows:,}"],
        ["ids missing, duplicated or out of place", wrong],
        ["largest difference of a vector element from the local engine", f"{largest:.1e}"],
    ]


if __name__ == "__main__":
    main()
