"""Two processes, as torchrun starts them, do what one does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tercet.data.sample import write_sample

STEPS = 20
TOLERANCE = 1e-5
# 7 does not divide by 2, and the last batch of 50 rows has 1 row, so that one process gets none.
BATCH, ROWS = 7, 50

PLAIN = f"""
[[stages]]
schedule = {{ kind = "round-robin" }}
steps = {STEPS}
batch = {BATCH}
optimiser = {{ lr = 1e-3, head_lr = 1e-2 }}
"""
SURGERY = f"""
[[stages]]
schedule = {{ kind = "together" }}
surgery = "pcgrad"
steps = {STEPS}
batch = {BATCH}
accumulate = 2
# High, so that tasks soon disagree and the random order in which PCGrad takes them shows.
optimiser = {{ lr = 5e-3, warmup = 0.0 }}
"""
CONTRASTIVE_TASKS = """
[tasks.contrast]
data = { layout = "cs224n-quora" }

[tasks.contrast.bi]
objective = { kind = "simcse", temperature = 0.1 }

[tasks.ranking]
data = { layout = "cs224n-sts" }

[tasks.ranking.bi]
objective = { kind = "multiple-negatives-ranking" }
"""
SOME_CHECKPOINTS = """
[evaluation]
every = 5

[checkpoint]
every = 8
keep = 9
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_sample(folder, rows=ROWS)
    return folder


@pytest.fixture
def train(tercet: Any, here: Any, data: Path, tmp_path: Path) -> Any:
    """Train a recipe in so many processes; the run and what was said on stderr."""

    def run(recipe: Path, *, processes: int) -> tuple[Path, str]:
        out = tmp_path / f"run-{processes}"
        arguments = ["train", recipe, "--data", data, "--out", out, "--device", "cpu"]
        ended = here(*arguments) if processes == 1 else tercet.run(*arguments, torchrun=processes)
        assert ended.code == 0, ended.err
        return out, ended.err

    return run


@pytest.mark.parametrize(
    ("stages", "tasks"),
    [(PLAIN, None), (SURGERY, None), (PLAIN, CONTRASTIVE_TASKS)],
    ids=["plain", "surgery", "contrastive"],
)
def test_two_processes_train_as_one(
    train: Any, write_recipe: Any, stages: str, tasks: str | None, record_property: Any
) -> None:
    chosen = {} if tasks is None else {"tasks": tasks}
    # Each process draws dropout of its own, so only without it can losses be the same.
    recipe = write_recipe(stages + SOME_CHECKPOINTS, dropout=0.0, **chosen)
    alone, said_alone = train(recipe, processes=1)
    both, said_both = train(recipe, processes=2)
    worst = compare_steps(steps_of(alone), steps_of(both))
    record_property("worst loss difference", worst)
    assert worst <= TOLERANCE
    assert files_of(alone) == files_of(both)
    assert shorn(said_both, both) == shorn(said_alone, alone)


def test_two_processes_learn_from_a_teacher_as_one(
    here: Any, train: Any, write_recipe: Any, data: Path, tmp_path: Path
) -> None:
    teacher = tmp_path / "teacher"
    ended = here("train", write_recipe(PLAIN), "--data", data, "--out", teacher, "--device", "cpu")
    assert ended.code == 0, ended.err
    blocks = "".join(
        f"\n[tasks.{task}.teacher]\nfolder = '{teacher}'\n"
        for task in ("sentiment", "paraphrase", "similarity")
    )
    recipe = write_recipe(PLAIN + blocks, dropout=0.0)
    both, said = train(recipe, processes=2)
    alone, _ = train(recipe, processes=1)
    assert compare_steps(steps_of(alone), steps_of(both)) <= TOLERANCE
    assert said.count(f"sentiment (single) of {teacher}: ") == 1


def test_two_processes_resume_exactly(
    tercet: Any, write_recipe: Any, train: Any, data: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(PLAIN + SOME_CHECKPOINTS)
    whole, _ = train(recipe, processes=2)
    sewn = tmp_path / "sewn"
    shutil.copytree(whole, sewn)
    shutil.rmtree(sewn / "model")
    (sewn / "summary.json").unlink()
    shutil.rmtree(sewn / "checkpoints" / f"step-{STEPS:08d}")
    arguments = ["train", recipe, "--data", data, "--out", sewn, "--device", "cpu", "--resume"]
    ended = tercet.run(*arguments, torchrun=2)
    assert ended.code == 0, ended.err
    assert ended.err.count("Resuming after step 16.") == 1
    for file in ("metrics.jsonl", "model/model.safetensors", "model/heads.safetensors"):
        assert (sewn / file).read_bytes() == (whole / file).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("tasks.sentiment.data.train=absent.csv", "absent.csv"),
        ("stages.0.optimiser.lr=1e30", "nan"),
    ],
    ids=["before the first step", "at a step"],
)
def test_a_mistake_is_told_once(
    tercet: Any, write_recipe: Any, data: Path, tmp_path: Path, change: str, message: str
) -> None:
    out = tmp_path / "run"
    arguments = ["train", write_recipe(PLAIN), "--data", data, "--out", out, "--device", "cpu"]
    ended = tercet.run(*arguments, "--set", change, torchrun=2)
    assert ended.code != 0
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, ended.err
    assert message in errors[0]
    assert out.exists() == ("lr" in change)


def steps_of(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return [line for line in map(json.loads, lines) if "loss" in line]


def compare_steps(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> float:
    """The greatest difference of losses; steps must visit the same tasks at the same rates."""
    assert len(one) == len(other) == STEPS
    assert [(a["step"], list(a["loss"]), a["lr"]) for a in one] == [
        (b["step"], list(b["loss"]), b["lr"]) for b in other
    ]
    return max(
        abs(a["loss"][task] - b["loss"][task])
        for a, b in zip(one, other, strict=True)
        for task in a["loss"]
    )


def files_of(run: Path) -> set[str]:
    """The files of a run; which step was the best may hang on the last digit."""
    return {
        str(path.relative_to(run)) for path in run.rglob("*") if "best-" not in str(path.parent)
    }


def shorn(said: str, run: Path) -> list[str]:
    """The lines of talk that do not hang on speed or the last digits of a figure."""
    lines = said.replace(str(run), "RUN").splitlines()
    return [line.partition(": score")[0] for line in lines if not line.startswith("stage ")]
