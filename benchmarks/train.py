"""Training on a GPU against the sentence-transformers trainer; gradient surgery and GradCache.

    python benchmarks/train.py [peer] [first] [rate] [surgery] [cache] --data DIR [--steps N]

Everything is bf16. `peer` trains the same pairs with the same loss and steps in both libraries and
scores both on dev. `first` is the first minute: the same, each run in a process of its own, Tercet
with an empty cache of compiled kernels and again with what that left. `rate` compares a bert-base
shape at 32,768 tokens per step with this GPU's own matrix products. `surgery` compares PCGrad with
the plain sum and with conventional PCGrad. `cache` compares GradCache at 4,096 triples with batches
of 256. --encoder minilm or base chooses one of the two encoders of `peer` and `first`; DIR defaults
to TERCET_DATA.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from scipy.stats import pearsonr
from torch import Tensor
from train_records import RECORDS

import tercet
from tercet.data.examples import read_examples
from tercet.nn.architectures.record import ARCHITECTURES, EncoderConfig
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.folder import save_encoder
from tercet.nn.fused import FusedEncoder
from tercet.recipe import Recipe
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Tokens
from tercet.training.backward import Backward
from tercet.training.distributed import World
from tercet.training.listener import Silent
from tercet.training.loop import Loop
from tercet.training.parts import choose_trainable, set_modes
from tercet.training.plan import StagePlan
from tercet.training.preparation import prepare
from tercet.training.run import train_recipe
from tercet.training.update import Update
from tercet.weights import resolve

Measured = TypeVar("Measured")
BATCH = 64
BASE = {"width": 768, "layers": 12, "heads": 12, "feed_forward": 3072}


def pairs_recipe(encoder: str, *, steps: int) -> Recipe:
    """The target cosine is 1 for duplicates, else 0: the peer's CosineSimilarityLoss."""
    return Recipe.from_tree(
        {
            "name": "benchmark",
            "summary": "Cosine regression on pairs",
            "encoder": {"name": encoder, "pooling": "mean"},
            "tasks": {
                "pairs": {
                    "data": {"layout": "cs224n-quora", "on_bad_row": "skip"},
                    "range": [0, 1],
                    "bi": {
                        "head": {"kind": "cosine"},
                        "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
                    },
                }
            },
            "stages": [
                {
                    "name": "fine-tune",
                    "steps": steps,
                    "batch": BATCH,
                    "optimiser": {"lr": 2e-5, "clip": 1.0, "warmup": 0.1, "decay": "linear"},
                    "evaluation": {"every": 0, "keep": "last"},
                }
            ],
            "checkpoint": {"every": 0},
        },
        where="benchmark",
    )


class Clock(Silent):
    """Records when steps were done."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, int]] = []

    def begin_stage(self, name: str, *, steps: int, done: int) -> None:
        self.marks.append((time.perf_counter(), 0))

    def steps(self, lines: Sequence[Any], *, rows: int) -> None:
        torch.cuda.synchronize()
        self.marks.append((time.perf_counter(), self.marks[-1][1] + rows))

    def rates(self) -> tuple[float, float]:
        """Rows per second: from the first step, and over the second half."""
        whole = _rate(self.marks[0], self.marks[-1])
        return whole, _rate(self.marks[len(self.marks) // 2], self.marks[-1])


def _rate(begin: tuple[float, int], end: tuple[float, int]) -> float:
    return (end[1] - begin[1]) / (end[0] - begin[0])


def seconds_at(marks: Sequence[tuple[float, int]]) -> dict[int, float]:
    """Seconds since the first mark, by the number of rows trained."""
    return {rows: when - marks[0][0] for when, rows in marks}


def ours(encoder: str, data: Path, *, steps: int, folder: Path) -> dict[str, Any]:
    """Rates; seconds from the call to the last step, and at each mark of the first stage."""
    clock = Clock()
    recipe = pairs_recipe(encoder, steps=steps)
    called = time.perf_counter()
    result = train_recipe(recipe, data=data, out=folder, device="cuda", listener=clock)
    assert result is not None
    whole, settled = clock.rates()
    return {
        "rows/s": whole,
        "settled": settled,
        "dev": result.dev["pairs"]["bi"]["pearson"] or 0.0,
        "call": clock.marks[-1][0] - called,
        "seconds": seconds_at(clock.marks),
    }


def quora(data: Path, split: Literal["train", "dev"]) -> tuple[list[str], list[str], list[float]]:
    """First and second questions and labels, without bad rows."""
    task = pairs_recipe("any", steps=1).tasks["pairs"]
    examples = read_examples(task, split, data)
    assert examples.labels is not None
    return *examples.texts, examples.labels.tolist()


def peers(encoder: Path, data: Path, *, steps: int, folder: Path) -> dict[str, Any]:
    """The same; its call begins after imports, and its first mark is after its first step."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
    from transformers import TrainerCallback

    called = time.perf_counter()
    # In float32 whatever the file has: training in half precision would not be the same work.
    model = SentenceTransformer(str(encoder), device="cuda", model_kwargs={"dtype": torch.float32})
    first, second, labels = quora(data, "train")
    rows = Dataset.from_dict({"sentence1": first, "sentence2": second, "score": labels})
    marks: list[tuple[float, int]] = []

    class Marks(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if state.global_step % 20 == 1 or state.global_step == steps:
                torch.cuda.synchronize()
                marks.append((time.perf_counter(), state.global_step * BATCH))

    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=BATCH,
        learning_rate=2e-5,
        warmup_steps=steps // 10,
        bf16=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        loss=CosineSimilarityLoss(model),
        callbacks=[Marks()],
    )
    trainer.train()
    first, second, labels = quora(data, "dev")
    u, v = (
        model.encode(texts, batch_size=256, normalize_embeddings=True) for texts in (first, second)
    )
    return {
        "rows/s": _rate(marks[0], marks[-1]),
        "settled": _rate(marks[len(marks) // 2], marks[-1]),
        "dev": float(pearsonr((u * v).sum(1), labels).statistic),
        "call": marks[-1][0] - called,
        "seconds": seconds_at(marks),
    }


def against_the_peer(encoder: str, data: Path, *, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = resolve(encoder)
        results = {
            "tercet": ours(encoder, data, steps=steps, folder=Path(folder) / "ours"),
            "sentence-transformers": peers(path, data, steps=steps, folder=Path(folder) / "peer"),
        }
    ratios = {
        key: results["tercet"][key] / results["sentence-transformers"][key]
        for key in ("rows/s", "settled")
    }
    return {"encoder": encoder, "steps": steps, **results, "ratio": ratios}


def first_minute(encoder: str, data: Path, *, steps: int) -> dict[str, Any]:
    """Both trainers from their first step, in fresh processes."""
    before = os.environ.get("TRITON_CACHE_DIR")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "kernels")
        try:
            results = {
                kernels: alone(ours, encoder, data, steps=steps, folder=folder / kernels)
                for kernels in ("none compiled", "compiled")
            }
        finally:
            os.environ.pop("TRITON_CACHE_DIR")
            if before is not None:
                os.environ["TRITON_CACHE_DIR"] = before
        path = resolve(encoder)
        peer = alone(peers, path, data, steps=steps, folder=folder / "peer")
    ratios = {
        kernels: {
            "rows/s": found["rows/s"] / peer["rows/s"],
            "call": peer["call"] / found["call"],
        }
        for kernels, found in results.items()
    }
    return {
        "encoder": Path(encoder).name,
        "steps": steps,
        **results,
        "sentence-transformers": peer,
        "ratio": ratios,
    }


def seconds_of(run: Callable[[], object], *, runs: int = 10) -> float:
    """The median time of a call on the GPU, after two warm-up calls."""
    times = []
    for number in range(runs + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        if number >= 2:
            times.append(time.perf_counter() - start)
    return float(np.median(times))


def matmul_rate() -> float:
    """Operations per second of a large bf16 product."""
    size = 8192
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * size**3 / seconds_of(lambda: a @ b)


def base_shape() -> EncoderConfig:
    return ARCHITECTURES["bert"].config(
        vocabulary=30522, positions=512, token_types=2, pooler=True, **BASE
    )


def random_tokens(rows: int, length: int) -> Tokens:
    ids = np.random.default_rng(0).integers(1000, 30000, rows * length, dtype=np.int32)
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    return Tokens(ids=ids, types=np.zeros_like(ids), offsets=offsets, longest=length, truncated=0)


def rate() -> dict[str, Any]:
    """Forward and backward at 32,768 tokens per step, compared with this GPU's matrix products."""
    ceiling = matmul_rate()
    encoder = Encoder(base_shape()).cuda().train()
    for parameter in encoder.parameters():
        parameter.grad = torch.zeros_like(parameter)
    layers = FusedEncoder(encoder)
    results: dict[str, Any] = {"matmul TFLOP/s": ceiling / 1e12}
    for length in (32, 64, 128):
        tokens = DeviceTokens.from_host(
            random_tokens(32_768 // length, length), torch.device("cuda")
        )

        def step(tokens: DeviceTokens = tokens) -> None:
            states = layers(tokens, [encoder.config.layers])
            assert states is not None
            torch.autograd.backward(states[0].float().square().mean())

        weights = sum(
            p.numel() for layer in encoder.layers for p in layer.parameters() if p.ndim == 2
        )
        attention = 4 * length * encoder.config.width * encoder.config.layers
        work = 3 * 32_768 * (2 * weights + attention)
        took = seconds_of(step)
        key = f"{length} tokens per row"
        results[key] = {"ms": 1e3 * took, "of matmul": work / took / ceiling}
    return results


def together(encoder: str, *, surgery: str | None) -> Recipe:
    changes = [f"encoder.name={encoder}", f"stages.0.batch={BATCH}"]
    return Recipe.load("sbert/exp1" if surgery else "sbert/exp2", changes)


@dataclass(frozen=True, slots=True)
class Stepper:
    """The first stage of a recipe, ready to step, with memory statistics reset."""

    plan: StagePlan
    backward: Backward
    update: Update

    @classmethod
    def prepare(cls, recipe: Recipe, data: Path) -> Stepper:
        free_memory()
        world = World.join("cuda")
        losses = prepare(recipe, data=data, world=world, listener=Silent()).losses(world)
        network = losses.network
        stage = recipe.stages[0]
        loop = Loop(
            recipe, losses=losses, log=None, checkpoints=None, listener=Silent(), score=None
        )
        plan = loop._plan(stage)
        choose_trainable(network, stage, tasks=plan.tasks)
        set_modes(network)
        backward = Backward(recipe, stage, losses)
        rows, after = backward.rows, backward.follow_weights
        return cls(plan, backward, Update(network, stage.optimiser, rows=rows, after=after))


def free_memory() -> None:
    """Free the memory of earlier measurements, including reference cycles."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def alone(measure: Callable[..., Measured], *arguments: object, **named: object) -> Measured:
    """Call a function in a process of its own, with fresh GPU memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, *arguments, **named).result()


def steps_of(encoder: str, data: Path, *, surgery: str | None) -> tuple[float, float]:
    """Seconds per step and peak bytes of three tasks together, once settled."""
    ready = Stepper.prepare(together(encoder, surgery=surgery), data)

    def step(number: int) -> None:
        draws = ready.plan.draws(number)
        ready.backward(draws, step=number)
        ready.update(factor=1.0, tasks=frozenset(draw.task for draw in draws))

    # Only the first steps draw all three tasks: small data sets end early. They are repeated until
    # every shape has been captured, and then timed.
    shared = 90
    took = []
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for number in range(shared):
            step(number)
        torch.cuda.synchronize()
        took.append((time.perf_counter() - start) / shared)
    return median(took[3:]), float(torch.cuda.max_memory_allocated())


def conventional_surgery(encoder: str, data: Path) -> tuple[float, float]:
    """The same with a retained graph per task and gradients copied into vectors."""
    recipe = together(encoder, surgery="pcgrad")
    world = World.join("cuda")
    losses = prepare(recipe, data=data, world=world, listener=Silent()).losses(world)
    network = losses.network
    tasks = recipe.stage_tasks(recipe.stages[0])
    network.train()
    body = list(network.encoder.parameters())
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)
    generator = np.random.default_rng(0)

    def step() -> None:
        optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            parts = []
            for task in tasks:
                rows = generator.integers(0, len(losses.tables[task]), BATCH)
                parts.append(losses.loss(losses.batch(task, rows, total=BATCH)))
        vectors = []
        for part in parts:
            network.encoder.zero_grad(set_to_none=True)
            torch.autograd.backward(part, retain_graph=True)
            vectors.append(flat_gradient(body))
        projected = pcgrad(vectors)
        begin = 0
        for parameter in body:
            parameter.grad = projected[begin : begin + parameter.numel()].view_as(parameter)
            begin += parameter.numel()
        optimiser.step()

    return seconds_of(step, runs=20), float(torch.cuda.max_memory_allocated())


def flat_gradient(parameters: Sequence[Tensor]) -> Tensor:
    return torch.cat(
        [(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in parameters]
    )


def pcgrad(vectors: Sequence[Tensor]) -> Tensor:
    projections = []
    for number, vector in enumerate(vectors):
        projected = vector.clone()
        for other in np.random.permutation(len(vectors)):
            if other != number and (inner := torch.dot(projected, vectors[other])) < 0:
                projected -= inner / vectors[other].square().sum() * vectors[other]
        projections.append(projected)
    return torch.stack(projections).sum(0)


def surgery(encoder: str, data: Path) -> dict[str, Any]:
    measured = {
        "sum": alone(steps_of, encoder, data, surgery=None),
        "surgery": alone(steps_of, encoder, data, surgery="pcgrad"),
        "conventional surgery": alone(conventional_surgery, encoder, data),
    }
    shown: dict[str, Any] = {
        name: {"ms per step": 1e3 * took, "peak GB": peak / 1e9}
        for name, (took, peak) in measured.items()
    }
    for name in ("surgery", "conventional surgery"):
        shown[f"{name} / sum"] = [
            value / base for value, base in zip(measured[name], measured["sum"], strict=True)
        ]
    return {"encoder": encoder, **shown}


def triples_recipe(encoder: str, *, batch: int, chunk: int | None) -> Recipe:
    task: dict[str, Any] = {
        "data": {"layout": "nli-triples"}, "batch": batch, "bi": {"objective": {"kind": "simcse"}},
    }  # fmt: skip
    if chunk is not None:
        task["chunk"] = chunk
    return Recipe.from_tree(
        {
            "name": "benchmark",
            "summary": "Contrast of triples",
            "encoder": {
                "name": encoder,
                "pooling": "mean",
                "dropout": 0.0,
                "attention_dropout": 0.0,
            },
            "tasks": {"triples": task},
            "stages": [{"name": "contrast", "steps": 10, "optimiser": {"lr": 1e-5}}],
        },
        where="benchmark",
    )


def gradient_of(
    encoder: str, data: Path, *, batch: int, chunk: int | None
) -> tuple[Tensor, float, float]:
    """The gradient of the first step, peak bytes, and the seconds per later step."""
    ready = Stepper.prepare(triples_recipe(encoder, batch=batch, chunk=chunk), data)
    ready.backward(ready.plan.draws(0), step=0)
    gradient = ready.backward.rows.rows[0].clone().cpu()
    tasks = frozenset({"triples"})
    ready.update(factor=0.0, tasks=tasks)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number in range(1, 6):
        ready.backward(ready.plan.draws(number), step=number)
        ready.update(factor=0.0, tasks=tasks)
    torch.cuda.synchronize()
    took = (time.perf_counter() - start) / 5
    return gradient, float(torch.cuda.max_memory_allocated()), took


def cache(encoder: str, data: Path) -> dict[str, Any]:
    _, small, _ = gradient_of(encoder, data, batch=256, chunk=None)
    _, large, took = gradient_of(encoder, data, batch=4096, chunk=256)
    _, larger, _ = gradient_of(encoder, data, batch=16_384, chunk=256)
    whole, _, _ = gradient_of(encoder, data, batch=512, chunk=None)
    parts, _, _ = gradient_of(encoder, data, batch=512, chunk=128)
    return {
        "encoder": encoder,
        "peak GB at 256, 4096, 16384": [small / 1e9, large / 1e9, larger / 1e9],
        "peak of 4096 / 256": large / small,
        "seconds per step at 4096": took,
        "gradient at 512, relative difference": float((whole - parts).norm() / whole.norm()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=["peer", "first", "rate", "surgery", "cache"])
    given = os.environ.get("TERCET_DATA")
    parser.add_argument("--data", type=Path, required=given is None, default=given)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--encoder", choices=["minilm", "base"], nargs="*")
    arguments = parser.parse_args()
    print(f"tercet {tercet.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    with tempfile.TemporaryDirectory() as folder:
        shape = Path(folder) / "bert-base-shape"
        Tokenizer.load(resolve("all-minilm-l6-v2")).save(shape)
        torch.manual_seed(0)
        save_encoder(Encoder(base_shape()), shape)
        encoders = {"minilm": "all-minilm-l6-v2", "base": str(shape)}
        names = [encoders[name] for name in arguments.encoder or encoders]
        for part in arguments.parts:
            result = {
                "peer": lambda: [
                    against_the_peer(name, arguments.data, steps=arguments.steps) for name in names
                ],
                "first": lambda: [
                    first_minute(name, arguments.data, steps=arguments.steps) for name in names
                ],
                "rate": rate,
                "surgery": lambda: surgery(str(shape), arguments.data),
                "cache": lambda: cache(str(shape), arguments.data),
            }[part]()
            print(json.dumps({part: result}, indent=1), flush=True)
            RECORDS[part](result)


if __name__ == "__main__":
    main()
