"""What the host does per text while a GPU embeds: the same path with an encoder that costs nothing.

    python benchmarks/host.py [ENCODER] [TEXTS]        default: all-minilm-l6-v2, 38,087 texts

Needs no GPU: the encoder is replaced by one that returns zeros at once, on a device without memory
(`meta`), so that tokens are packed and results are read as for a GPU. With TERCET_DATA the texts
are Quora's questions, else generated ones. Run it with the sources of two commits in PYTHONPATH to
compare them. Rates are the best of some runs; `word pieces` and `the rest` are measured alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import tercet
from tercet.infer import engine as engines

TEXTS, RUNS = 38_087, 5
NOWHERE = torch.device("meta")


def questions(count: int) -> list[str]:
    """Distinct questions of quora-dev if TERCET_DATA contains it, otherwise generated ones."""
    if "TERCET_DATA" not in os.environ:
        from encoders import make_texts

        return make_texts(count)
    from real_data import real_file

    from tercet.data.examples import read_texts

    file = real_file("quora-dev.csv")
    columns = [read_texts(file, [name])[0] for name in ("sentence1", "sentence2")]
    return list(dict.fromkeys(columns[0] + columns[1]))[:count]


class FreeNetwork:
    """A network that returns zeros at once."""

    device = NOWHERE
    training = False

    def __init__(self, width: int) -> None:
        self.tasks: dict[str, Any] = {}
        self.encoder = SimpleNamespace(config=SimpleNamespace(width=width))
        self.zeros = torch.zeros(1, width)

    def vectors(self, tokens: Any) -> Any:
        return self.zeros.expand(tokens.count, -1)


def best(work: Callable[[], Any]) -> tuple[float, float]:
    """Wall-clock and processor seconds of the fastest of some runs."""
    times = []
    for _ in range(RUNS):
        wall, used = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - used))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("encoder", nargs="?", default="all-minilm-l6-v2")
    parser.add_argument("texts", nargs="?", type=int, default=TEXTS)
    arguments = parser.parse_args()
    texts = questions(arguments.texts)
    model = tercet.load(arguments.encoder, device="cpu")
    model._network = FreeNetwork(model.width)
    model.info = model.info  # so that the engine is made again
    engines.budget_of = lambda device: engines.CUDA_BUDGET
    engines.Engine.part_rows = property(lambda engine: engines.CUDA_PART)
    size = engines.CUDA_PART
    parts = [texts[start : start + size] for start in range(0, len(texts), size)]
    stages = {
        "all": best(lambda: model.embed(texts)),
        "word pieces": best(lambda: [model.pieces(part) for part in parts]),
    }
    made = {id(part[0]): model.pieces(part) for part in parts}
    by_first = {part[0]: made[id(part[0])] for part in parts}
    model.pieces = lambda part, **_: by_first[part[0]]
    stages["the rest"] = best(lambda: model.embed(texts))
    assert not np.isnan(model.embed(texts[:10])).any()
    print(f"{len(texts):,} texts, {os.cpu_count()} cores, {Path(tercet.__file__).parents[2].name}")
    print("| stage | texts/s | microseconds per text | of processor time |")
    print("|---|---|---|---|")
    for name, (wall, used) in stages.items():
        each = 1e6 / len(texts)
        print(f"| {name} | {len(texts) / wall:,.0f} | {wall * each:.2f} | {used * each:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
