"""Embedding on this machine: sentences a second against sentence-transformers at its defaults.

    python benchmarks/embed.py [ENCODER]

Runs are interleaved and the medians compared, in one process, with the same weights, sentences and
threads. Sentences are quora-dev's where TERCET_DATA points to it, else the project's own sample.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

import tercet
from tercet.data.examples import read_texts
from tercet.data.files import find_file
from tercet.data.sample import write_sample
from tercet.weights import resolve

SENTENCES, RUNS = 2_000, 5


def sentences() -> list[str]:
    """Real questions where there are some."""
    if "TERCET_DATA" in os.environ:
        root = Path(os.environ["TERCET_DATA"])
        (texts,) = read_texts(find_file("quora-dev.csv", (root, root / "cs224n")), ["sentence1"])
        return texts[:SENTENCES]
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=SENTENCES)
        (texts,) = read_texts(Path(folder) / "quora-train.csv", ["sentence1"])
        return texts


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    folder = resolve(sys.argv[1] if len(sys.argv) > 1 else "all-minilm-l6-v2")
    texts = sentences()
    ours = tercet.load(folder, device="cpu")
    peer = SentenceTransformer(str(folder), device="cpu")
    difference = np.abs(ours.embed(texts[:64]) - peer.encode(texts[:64])).max()
    times: dict[str, list[float]] = {"tercet": [], "sentence-transformers": []}
    for _ in range(RUNS):
        times["tercet"].append(seconds(lambda: ours.embed(texts)))
        times["sentence-transformers"].append(
            seconds(lambda: peer.encode(texts, show_progress_bar=False))
        )
    rates = {name: len(texts) / statistics.median(found) for name, found in times.items()}
    for name, rate in rates.items():
        print(f"{name}\t{rate:.0f} sentences/s")
    ratio = rates["tercet"] / rates["sentence-transformers"]
    print(f"ratio\t{ratio:.2f}\t(fp32, {torch.get_num_threads()} threads, {len(texts)} sentences)")
    print(f"greatest difference\t{difference:.1e}")


if __name__ == "__main__":
    main()
