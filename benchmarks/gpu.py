"""Inference on a GPU against sentence-transformers: embedding, predicting and joined pairs.

    TERCET_RECORD=results/gpu.json python benchmarks/gpu.py [minilm] [mpnet] [scores]

Measures what is named, by default all, in about three minutes on an H200, and needs neither a
network nor an installation (PYTHONPATH=src). `minilm` is the model that ships, `mpnet` an encoder
of MPNet-base's shape with random weights and heads of the same tasks (--mpnet FOLDER: one with
trained weights). Texts are Quora's questions with TERCET_DATA, else made up; pairs are neighbours
among them. Ours computes in bf16, its default; the peer has its best of fp16 and bf16 with batches
of 128, 512 and 2048, found on a part of the inputs. Runs alternate, and medians are compared. The
peer of `predict` only encodes, which is less than what is asked; that of pairs is its CrossEncoder
with a head of one layer. `scores` are dev scores of the shipped model in fp32 and bf16, which need
TERCET_DATA.
"""

from __future__ import annotations

import argparse
import csv
import gc
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from host import questions
from records import record

import tercet
from encoders import FAMILIES, make_folder

TEXTS = {"cuda": 38_087, "cpu": 256}
BATCHES = {"cuda": (128, 512, 2048), "cpu": (32,)}
TYPES = {"cuda": ("float16", "bfloat16"), "cpu": ("float32",)}
TRIAL = 8_192
"""Inputs on which the peer's settings are compared."""
EXACT = 4_096
"""Texts whose vectors are compared with those in fp32."""
RUNS = 3
PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "numpy")
COLUMNS = ("encoder", "work", "Tercet per second", "peer per second", "ratio", "its setting")
Work = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """An encoder that both libraries read.

    folder: of sentence-transformers; joint: of its CrossEncoder
    """

    name: str
    folder: Path
    joint: Path
    model: Any
    exact: Any


def load(folder: Path | None, device: str, precision: Any) -> Any:
    """A model with the tasks of the one that ships."""
    model = tercet.load(folder, device=device, precision=precision)
    if folder is None:
        return model
    from tercet.model import Model
    from tercet.network.network import Network

    tasks = tercet.load(device="cpu").info.tasks
    network = Network(model.network.encoder, pooling="mean", tasks=tasks).to(device)
    info = model.info.model_copy(update={"tasks": tasks})
    return Model(network, model.tokenizer, info, precision=model.precision)


def subject(name: str, folder: Path | None, device: str, place: Path) -> Subject:
    """folder: None for the model that ships"""
    from transformers import AutoModelForSequenceClassification

    from tercet.model import SHIPPED_FOLDER

    source = SHIPPED_FOLDER if folder is None else folder
    joint = place / f"{name}-joint"
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(joint)
    for file in source.glob("*"):
        if file.name.startswith(("tokenizer", "vocab", "special")):
            shutil.copy(file, joint)
    precision = "bf16" if device == "cuda" else None
    exact = load(folder, device, "fp32")
    return Subject(name, source, joint, load(folder, device, precision), exact)


def subjects(names: list[str], device: str, mpnet: Path | None) -> Iterator[Subject]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if "minilm" in names:
            yield subject("minilm", None, device, place)
        if "mpnet" in names:
            if mpnet is None:
                make_folder(FAMILIES["mpnet"], questions(8_192), place / "mpnet")
                mpnet = place / "mpnet" / "sentence"
            yield subject("mpnet", mpnet, device, place)


def peer_encoder(folder: Path, device: str, dtype: str, batch: int) -> Work:
    import torch
    from sentence_transformers import SentenceTransformer

    options = {"torch_dtype": getattr(torch, dtype)}
    model = SentenceTransformer(str(folder), device=device, model_kwargs=options)
    return lambda texts: model.encode(
        texts, batch_size=batch, show_progress_bar=False, normalize_embeddings=True
    )


def peer_joint(folder: Path, device: str, dtype: str, batch: int) -> Work:
    import torch
    from sentence_transformers import CrossEncoder

    options = {"torch_dtype": getattr(torch, dtype)}
    model = CrossEncoder(str(folder), device=device, model_kwargs=options)
    return lambda pairs: model.predict(pairs, batch_size=batch, show_progress_bar=False)


def seconds(work: Work, inputs: list[Any]) -> float:
    start = time.perf_counter()
    work(inputs)
    return time.perf_counter() - start


def best_peer(make: Callable[[str, int], Work], inputs: list[Any], device: str) -> tuple[str, Work]:
    """The fastest of the peer's settings on a part of the inputs."""
    trials = []
    for dtype in TYPES[device]:
        for batch in BATCHES[device]:
            work = make(dtype, batch)
            work(inputs[:batch])
            part = inputs[:TRIAL]
            trials.append((seconds(work, part), f"{dtype}, batch {batch}", dtype, batch))
            del work
            gc.collect()
    _, name, dtype, batch = min(trials)
    return name, make(dtype, batch)


def race(ours: Work, peer: Work, inputs: list[Any]) -> tuple[float, float]:
    """Inputs per second of both, by the medians of alternating runs."""
    for work in (ours, peer):
        work(inputs[: 2 * TRIAL])
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(RUNS):
        times["ours"].append(seconds(ours, inputs))
        times["peer"].append(seconds(peer, inputs))
    ours_median, peer_median = (statistics.median(times[side]) for side in ("ours", "peer"))
    return len(inputs) / ours_median, len(inputs) / peer_median


def cosine(subject: Subject, texts: list[str]) -> tuple[float, float]:
    """Of our vectors with those in fp32: mean, and lowest."""
    part = texts[:EXACT]
    cosines = (subject.model.embed(part) * subject.exact.embed(part)).sum(axis=1)
    return float(cosines.mean()), float(cosines.min())


def measure(subject: Subject, texts: list[str], device: str) -> tuple[list[list[str]], list[str]]:
    """Rows of the table, and the subject's row of cosines."""
    pairs = list(pairwise(texts))
    model, rows = subject.model, []
    kinds: dict[str, tuple[Work, Callable[[str, int], Work], list[Any]]] = {}

    def encoder(dtype: str, batch: int) -> Work:
        return peer_encoder(subject.folder, device, dtype, batch)

    def joint(dtype: str, batch: int) -> Work:
        return peer_joint(subject.joint, device, dtype, batch)

    kinds["embed"] = model.embed, encoder, texts
    kinds["predict"] = lambda some: model.predictions("sentiment", some), encoder, texts
    kinds["cross pairs"] = lambda some: model.paraphrase(some, "cross"), joint, pairs
    found: dict[Any, tuple[str, Work]] = {}
    for kind, (ours, make, inputs) in kinds.items():
        if make not in found:
            found = {make: best_peer(make, inputs, device)}  # the last one's memory is free again
        name, peer = found[make]
        rate, other = race(ours, peer, inputs)
        row = [subject.name, kind, f"{rate:,.0f}", f"{other:,.0f}", f"{rate / other:.2f}", name]
        print(*row, sep=" | ", flush=True)
        rows.append(row)
    mean, lowest = cosine(subject, texts)
    return rows, [subject.name, f"{mean:.6f}", f"{lowest:.6f}"]


def dev_rows(name: str, columns: list[str]) -> list[list[str]]:
    from real_data import real_file

    with real_file(name).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [[row[column] or "" for column in columns] for row in rows if all(row.values())]


def dev_scores(model: Any) -> dict[str, float]:
    """Accuracies, and the correlation of similarity, on the dev files."""
    sst = dev_rows("ids-sst-dev.csv", ["sentence", "sentiment"])
    quora = dev_rows("quora-dev.csv", ["sentence1", "sentence2", "is_duplicate"])
    sts = dev_rows("sts-dev.csv", ["sentence1", "sentence2", "similarity"])
    classes = model.predictions("sentiment", [text for text, _ in sst]).argmax(axis=1)
    scores = {"sentiment": float((classes == [int(label) for _, label in sst]).mean())}
    for mode in ("cross", "bi"):
        found = model.paraphrase([(a, b) for a, b, _ in quora], mode) >= 0.5
        right = np.array([float(label) > 0.5 for *_, label in quora])
        scores[f"paraphrase, {mode}"] = float((found == right).mean())
        grades = model.similarity([(a, b) for a, b, _ in sts], mode)
        correlation = np.corrcoef(grades, [float(grade) for *_, grade in sts])
        scores[f"similarity, {mode}"] = float(correlation[0, 1])
    return scores


def record_scores(device: str) -> None:
    exact, rough = (
        dev_scores(tercet.load(device=device, precision=precision))
        for precision in ("fp32", "bf16")
    )
    rows = [
        [name, f"{exact[name]:.4f}", f"{rough[name]:.4f}", f"{rough[name] - exact[name]:+.4f}"]
        for name in exact
    ]
    columns = ["dev score", "fp32", "bf16", "difference"]
    record("scores", columns=columns, rows=rows, packages=("torch",), encoder="the shipped model")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="of minilm, mpnet, scores")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--texts", type=int, help="default: 38,087 on a GPU")
    parser.add_argument("--mpnet", type=Path, metavar="FOLDER", help="default: random weights")
    arguments = parser.parse_args()
    device, parts = arguments.device, arguments.parts or ["minilm", "mpnet", "scores"]
    texts = questions(arguments.texts or TEXTS[device])
    data = "distinct questions of quora-dev" if "TERCET_DATA" in os.environ else "made-up questions"
    rows: list[list[str]] = []
    cosines: list[list[str]] = []
    for each in subjects(parts, device, arguments.mpnet):
        found, nearness = measure(each, texts, device)
        rows += found
        cosines.append(nearness)
        facts = {
            "packages": PACKAGES,
            "data": f"{len(texts):,} {data}",
            "values": {"cores": os.cpu_count()},
        }
        record("rates", columns=COLUMNS, rows=rows, **facts)
        columns = ["encoder", "mean cosine to fp32", "lowest"]
        record("cosines", columns=columns, rows=cosines, **facts)
    if "scores" in parts and "TERCET_DATA" in os.environ:
        record_scores(device)


if __name__ == "__main__":
    main()
