"""Sentences per second of several ways to embed, measured in turns in one process."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tercet.data.examples import read_texts
from tercet.data.sample import write_sample
from tercet.progress import Progress, silent
from tercet.specs import Floats

RUNS = 3
WARM_UP = 64
SAMPLE = 1_600
"""Most rows of the generated sample."""

Encode = Callable[[list[str]], Floats]


def generated_texts(count: int) -> list[str]:
    """Distinct sentences of the project's own sample; fewer if it has no more."""
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=SAMPLE)
        files = {"quora-train.csv": "sentence1", "ids-sst-train.csv": "sentence"}
        columns = [read_texts(Path(folder) / name, [text])[0] for name, text in files.items()]
    pairs = zip(*columns, strict=True)
    return list(dict.fromkeys(text for pair in pairs for text in pair))[:count]


def seconds(encode: Encode, texts: list[str]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    encode(texts)
    return time.perf_counter() - start


def sentence_rates(
    encoders: Mapping[str, Encode], texts: list[str], *, progress: Progress = silent
) -> dict[str, float]:
    """Sentences per second of each, the median of runs in turns."""
    times: dict[str, list[float]] = {name: [] for name in encoders}
    for encode in encoders.values():
        encode(texts[:WARM_UP])
    total = RUNS * len(encoders)
    for turn in range(RUNS):
        for number, (name, encode) in enumerate(encoders.items()):
            times[name].append(seconds(encode, texts))
            progress(turn * len(encoders) + number + 1, total, note=name)
    return {name: len(texts) / statistics.median(each) for name, each in times.items()}
