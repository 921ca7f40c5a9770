"""How fast models embed on this machine, compared with sentence-transformers where it is there."""

from __future__ import annotations

import importlib.util
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tercet.cores import threads
from tercet.evaluation.speed import RUNS, WARM_UP, Encode, generated_texts, seconds
from tercet.model import Model, load
from tercet.progress import Progress
from tercet.specs import Floats

PEER, OURS = "sentence-transformers", "tercet"
SINGLES = 40


@dataclass(slots=True)
class Timing:
    """Seconds of whole runs, and of sentences one at a time."""

    whole: list[float] = field(default_factory=list)
    single: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured.

    timings: by library; sentence-transformers first, if it is installed
    cosines: the mean cosine of each library's vectors to those of the model in torch, in fp32
    missing: the packages, by what they would add
    """

    sentences: int
    device: str
    timings: Mapping[str, Timing]
    cosines: Mapping[str, float]
    missing: Mapping[str, str]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows; ratios are to the first library."""
        columns = ["library", "sentences/s", "ratio", "ms per sentence", "ratio", "mean cosine"]
        first = next(iter(self.timings.values()))
        whole, single = statistics.median(first.whole), statistics.median(first.single)
        rows = []
        for name, timing in self.timings.items():
            median, one = statistics.median(timing.whole), statistics.median(timing.single)
            rates = [f"{self.sentences / median:,.0f}", f"{whole / median:.2f}"]
            latencies = [f"{1000 * one:.2f}", f"{single / one:.2f}"]
            rows.append([name, *rates, *latencies, f"{self.cosines[name]:.4f}"])
        return columns, rows


def measure(model: Model, *, count: int, progress: Progress) -> Rates:
    """Embed generated sentences with every engine that is installed, in turns.

    All run in this process with the same weights, sentences and threads.
    """
    texts = generated_texts(count)
    with tempfile.TemporaryDirectory() as place:
        encoders, missing = _encoders(model, Path(place))
        timings = {name: Timing() for name in encoders}
        vectors = {name: encode(texts[:WARM_UP]) for name, encode in encoders.items()}
        total = len(encoders) * (RUNS + 1)
        for turn in range(RUNS + 1):
            for number, (name, encode) in enumerate(encoders.items()):
                progress(turn * len(encoders) + number, total, note=name)
                if turn < RUNS:
                    timings[name].whole.append(seconds(encode, texts))
                else:
                    times = [seconds(encode, [text]) for text in texts[:SINGLES]]
                    timings[name].single.extend(times)
        progress(total, total)
    plain = vectors[OURS]
    cosines = {name: float((found * plain).sum(axis=1).mean()) for name, found in vectors.items()}
    device = str(model.engine.machine()["device"])
    return Rates(len(texts), device, timings, cosines, missing)


def _encoders(model: Model, place: Path) -> tuple[dict[str, Encode], dict[str, str]]:
    """Each engine by its name, and the packages that others need."""
    encoders: dict[str, Encode] = {}
    missing: dict[str, str] = {}
    device = str(model.engine.machine()["device"])
    if importlib.util.find_spec("sentence_transformers") is not None:
        model.save(place / "model")
        encoders[PEER] = _peer(place / "model", device)
    else:
        missing[f"the ratio to {PEER}"] = f"pip install {PEER}"
    encoders |= _torch_engines(model)
    if not _has("onnx", "onnxruntime"):
        missing["the 8-bit export, the fastest on a CPU"] = "pip install 'tercet[onnx]'"
        return encoders, missing
    from tercet.folders.model_folder import Parts
    from tercet.folders.onnx_folder import Precision, export_onnx

    parts = Parts(model.network, model.tokenizer, model.info)
    precisions: dict[str, Precision] = {"onnx": "fp32", "onnx-int8": "int8"}
    for name, precision in precisions.items():
        export_onnx(place / name, parts, precision=precision)
        encoders[f"{OURS} {name}, CPU"] = load(place / name).embed
    return encoders, missing


def _torch_engines(model: Model) -> dict[str, Encode]:
    """In full precision, and in bf16 where that should be faster."""
    from tercet.infer.half import is_worth_half

    exact = Model(model.network, model.tokenizer, model.info)
    if not is_worth_half(model.network.device):
        return {OURS: exact.embed}
    half = Model(model.network, model.tokenizer, model.info, precision="bf16")
    return {OURS: exact.embed, f"{OURS} bf16": half.embed}


def _has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


def _peer(folder: Path, device: str) -> Encode:
    from sentence_transformers import SentenceTransformer

    peer: Any = SentenceTransformer(str(folder), device=device)

    def encode(texts: list[str]) -> Floats:
        vectors: Floats = peer.encode(texts, show_progress_bar=False, normalize_embeddings=True)
        return vectors

    return encode


def machine(rates: Rates) -> str:
    """The conditions of a measurement, in words."""
    return (
        f"{rates.sentences} generated sentences, device {rates.device}, threads: {threads()}; "
        f"medians of {RUNS} runs in turns."
    )
