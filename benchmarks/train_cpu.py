"""Training on a CPU against the sentence-transformers trainer, alone and beside a busy process.

    python benchmarks/train_cpu.py rate [--steps N]      examples per second; writes results
    python benchmarks/train_cpu.py score [--steps N]     fp32 and bf16 on dev; writes results

MiniLM-L6, batches of 32 Quora pairs, cosine regression, all cores. Each run is in a process of its
own and reads TERCET_DATA. `beside` runs share the machine with one process that computes without
end. Settled rates and cores in use leave out the first steps. Threads that wait for others spin
before they sleep: briefly, as `tercet train` sets it; for milliseconds, OpenMP's default; or not at
all (OMP_WAIT_POLICY=PASSIVE). Writes its tables to results/train_cpu.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from real_data import real_data

from tercet.cores import BRIEF_SPINS, SPINS, threads

BATCH, WARM_UP = 32, 3
ENCODER = "all-minilm-l6-v2"
OURS, PEER = "tercet", "sentence-transformers"
FILE = "train_cpu.json"
BURN = "x = 0\nwhile True: x = (x * 31 + 7) % 1000003"
PACKAGES = ("torch", "sentence-transformers", "transformers")
SCORED, SEEDS, FIRST_SEED = 1_500, 3, 11711
BRIEFLY, LONG, NOT = "spin briefly", "spin for milliseconds", "sleep at once"
WAITING = {
    BRIEFLY: {SPINS: str(BRIEF_SPINS)},
    LONG: {},
    NOT: {"OMP_WAIT_POLICY": "PASSIVE"},
}
RUNS = (
    (PEER, "fp32", LONG, False),
    (OURS, "fp32", BRIEFLY, False),
    (OURS, "bf16", BRIEFLY, False),
    (OURS, "fp32", LONG, False),
    (OURS, "fp32", NOT, False),
    (OURS, "fp32", BRIEFLY, True),
    (OURS, "bf16", BRIEFLY, True),
    (OURS, "fp32", NOT, True),
    (OURS, "fp32", LONG, True),
)
"""Library, precision, what threads do that wait, and whether another process is busy."""
COLUMNS = ["library", "threads that wait", "beside a busy process", "examples/s"]
COLUMNS += ["ratio to the first", "cores in use", "of undisturbed"]


def recipe(*, steps: int, precision: str, rows: int, seed: int = FIRST_SEED) -> Any:
    """rows: of the training file, at most"""
    from train import pairs_recipe

    found = pairs_recipe(ENCODER, steps=steps)
    (stage,) = found.stages
    task = found.tasks["pairs"]
    limited = task.model_copy(update={"data": task.data.model_copy(update={"limit": rows})})
    trained = stage.model_copy(update={"batch": BATCH, "precision": precision})
    changes = {"tasks": {"pairs": limited}, "stages": [trained], "seed": seed}
    return found.model_copy(update=changes)


Mark = tuple[float, float]
"""The time, and the time of this process on all cores."""


def now() -> Mark:
    return time.perf_counter(), time.process_time()


def ours(steps: int, precision: str) -> list[Mark]:
    """The beginning, and the end of each step."""
    from tercet.training.backward import Backward
    from tercet.training.distributed import World
    from tercet.training.listener import Silent
    from tercet.training.loop import Loop
    from tercet.training.parts import choose_trainable, set_modes
    from tercet.training.preparation import prepare
    from tercet.training.update import Update

    chosen = recipe(steps=steps, precision=precision, rows=BATCH * (steps + 1))
    world = World.join("cpu")
    data = real_data()
    losses = prepare(chosen, data=data, world=world, listener=Silent()).losses(world)
    (stage,) = chosen.stages
    nothing: Any = None
    loop = Loop(
        chosen, losses=losses, log=nothing, checkpoints=nothing, listener=Silent(), score=None
    )
    plan = loop._plan(stage)
    choose_trainable(losses.network, stage, tasks=plan.tasks)
    set_modes(losses.network)
    backward = Backward(chosen, stage, losses)
    update = Update(losses.network, stage.optimiser, rows=backward.rows, after=None)
    marks = [now()]
    for number in range(steps):
        draws = plan.draws(number)
        backward(draws, step=number)
        update(factor=1.0, tasks=frozenset(draw.task for draw in draws))
        marks.append(now())
    return marks


def peers(steps: int, precision: str) -> list[Mark]:
    import torch
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
    from train import quora
    from transformers import TrainerCallback

    from tercet.weights import resolve

    model = SentenceTransformer(
        str(resolve(ENCODER)), device="cpu", model_kwargs={"dtype": torch.float32}
    )
    first, second, labels = quora(real_data(), "train")
    count = BATCH * (steps + 1)
    rows = Dataset.from_dict(
        {"sentence1": first[:count], "sentence2": second[:count], "score": labels[:count]}
    )
    marks: list[Mark] = []

    class Marks(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            if not marks:
                marks.append(now())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append(now())

    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=BATCH,
            learning_rate=2e-5,
            bf16=precision == "bf16",
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=rows,
            loss=CosineSimilarityLoss(model),
            callbacks=[Marks()],
        ).train()
    return marks


def one(library: str, precision: str, steps: str) -> None:
    """Train in this process; prints the marks as JSON."""
    print(json.dumps((ours if library == OURS else peers)(int(steps), precision)))


def alone(library: str, precision: str, steps: int, *, busy: bool, **variables: str) -> Any:
    """Examples per second once settled, and cores in use, in a process of its own."""
    command = [sys.executable, __file__, "one", library, precision, str(steps)]
    burner = subprocess.Popen([sys.executable, "-c", BURN]) if busy else None
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | variables
        )
    finally:
        if burner is not None:
            burner.kill()
            burner.wait()
    settled = json.loads(done.stdout.splitlines()[-1])[WARM_UP:]
    seconds, used = (end - begin for begin, end in zip(settled[0], settled[-1], strict=True))
    return BATCH * (len(settled) - 1) / seconds, used / seconds


def rate(steps: int) -> None:
    """Every row is recorded when it is measured: the last ones take longest."""
    from records import write_record

    rows: list[list[str]] = []
    undisturbed: dict[tuple[str, str, str], float] = {}
    for library, precision, waiting, busy in RUNS:
        examples, cores = alone(library, precision, steps, busy=busy, **WAITING[waiting])
        key = library, precision, waiting
        undisturbed.setdefault(key, examples)
        rows.append(
            [
                f"{library}, {precision}",
                waiting,
                "yes" if busy else "no",
                f"{examples:.1f}",
                f"{examples / next(iter(undisturbed.values())):.2f}",
                f"{cores:.2f}",
                f"{100 * examples / undisturbed[key]:.0f} %",
            ]
        )
        print("\t".join(rows[-1]), flush=True)
        write_record(
            FILE,
            "rate",
            command=f"python benchmarks/train_cpu.py rate --steps {steps}",
            columns=COLUMNS,
            rows=rows,
            packages=PACKAGES,
            encoder=ENCODER,
            data=f"Quora pairs, batches of {BATCH}, {steps - WARM_UP} steps after {WARM_UP}",
            threads=threads(),
        )


def score(steps: int) -> None:
    """Train the same steps in both precisions with each seed, and score on the first rows of dev.

    Every seed is recorded when it is done.
    """
    from records import write_record
    from scipy.stats import pearsonr
    from train import quora

    import tercet
    from tercet.training.listener import Silent
    from tercet.training.run import train_recipe

    data = real_data()
    first, second, labels = (part[:SCORED] for part in quora(data, "dev"))
    rows = []
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        scores = []
        for precision in ("fp32", "bf16"):
            chosen = recipe(steps=steps, precision=precision, rows=4_000, seed=seed)
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "run"
                train_recipe(chosen, data=data, out=out, device="cpu", listener=Silent())
                model = tercet.load(out, device="cpu")
                u, v = model.embed(first), model.embed(second)
            scores.append(pearsonr((u * v).sum(axis=1), labels).statistic)
        rows.append([str(seed), *(f"{score:.4f}" for score in scores)])
        print("\t".join(rows[-1]), flush=True)
        write_record(
            FILE,
            "score",
            command=f"python benchmarks/train_cpu.py score --steps {steps}",
            columns=["seed", "fp32", "bf16"],
            rows=rows,
            packages=PACKAGES,
            encoder=ENCODER,
            data=f"Quora pairs, {steps} batches of {BATCH}; Pearson on {SCORED} dev pairs",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["rate", "score"])
    parser.add_argument("--steps", type=int, default=18)
    arguments = parser.parse_args()
    real_data()  # missing: said before anything runs
    (rate if arguments.what == "rate" else score)(arguments.steps)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(*sys.argv[2:])
    else:
        main()
