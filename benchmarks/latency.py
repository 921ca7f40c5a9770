"""One sentence at a time: latency against sentence-transformers.

    python benchmarks/latency.py [ENCODER]

All run in one process with the same weights and threads, alternating sentence by sentence.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from records import record
from sentence_transformers import SentenceTransformer

import tercet
from embed import PACKAGES, export, sentences
from tercet.weights import resolve

SENTENCES, WARM_UP = 300, 20
PEER = "sentence-transformers"


def main() -> None:
    folder = resolve(sys.argv[1] if len(sys.argv) > 1 else "all-minilm-l6-v2")
    texts = sentences(SENTENCES + WARM_UP)
    peer = SentenceTransformer(str(folder), device="cpu")
    with tempfile.TemporaryDirectory() as out:
        encoders: dict[str, Any] = {
            PEER: lambda text: peer.encode([text], show_progress_bar=False),
            "tercet": _embed(folder),
            **{name: _embed(path) for name, path in export(folder, Path(out)).items()},
        }
        times: dict[str, list[float]] = {name: [] for name in encoders}
        for text in texts:
            for name, encode in encoders.items():
                start = time.perf_counter()
                encode(text)
                times[name].append(1000 * (time.perf_counter() - start))
    latencies = {name: np.percentile(values[WARM_UP:], [50, 95]) for name, values in times.items()}
    record(
        "latency",
        columns=["library", "p50 ms", "p95 ms", "p50, ratio to the first"],
        rows=[
            [name, f"{p50:.2f}", f"{p95:.2f}", f"{p50 / latencies[PEER][0]:.2f}"]
            for name, (p50, p95) in latencies.items()
        ],
        values={"sentences": SENTENCES},
        packages=PACKAGES,
        encoder=folder.name,
    )


def _embed(folder: Path) -> Any:
    model = tercet.load(folder, device="cpu")
    return lambda text: model.embed([text])


if __name__ == "__main__":
    main()
