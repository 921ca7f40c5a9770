"""The schedule that trains the task which needs it most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.recipe import Recipe
from tercet.specs import SCHEDULES, TaskSpec
from tercet.training.listener import Silent
from tercet.training.plan import StagePlan
from tercet.training.run import train_recipe
from tercet.training.schedules.needs import neediest

MLP = {"kind": "mlp", "dropout": 0.1}
BLOCKS: dict[str, Any] = {
    "sentiment": {
        "data": {"layout": "cs224n-sst", "limit": 40},
        "labels": ["0", "1", "2", "3", "4"],
        "single": {"head": MLP, "objective": {"kind": "cross-entropy"}},
    },
    "similarity": {
        "data": {"layout": "cs224n-sts", "limit": 40},
        "range": [0, 5],
        "cross": {"head": MLP, "objective": {"kind": "mean-squared-error"}},
    },
}
TASKS = {name: TaskSpec.model_validate(block) for name, block in BLOCKS.items()}


def test_the_neediest_lags_most_as_a_share_of_its_goal() -> None:
    dev: Any = {
        "sentiment": {"single": {"accuracy": 0.5}},
        "similarity": {"cross": {"pearson": 0.6}},
    }

    def first(goals: dict[str, float] | None) -> str:
        return neediest(SCHEDULES["needs"](goals=goals), dev, TASKS)

    assert first(None) == "sentiment"
    # 0.5 of 0.55 is nine tenths of the way, 0.6 of 0.9 two thirds.
    assert first({"sentiment": 0.55, "similarity": 0.9}) == "similarity"
    assert first({"sentiment": 0.9, "similarity": 0.9}) == "sentiment"


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), max_size=5).map(sorted),
    st.integers(0, 99),
)
def test_a_plan_that_turned_goes_on_where_each_task_was_left(
    turns: list[tuple[int, int]], seed: int
) -> None:
    sizes = {"a": 11, "b": 7, "c": 30}
    batches = dict.fromkeys(sizes, 4)
    plan = StagePlan(
        SCHEDULES["needs"](),
        sizes=sizes,
        rows_per_visit=batches,
        epochs=None,
        steps=60,
        seed=(seed, 0),
    )
    before = [plan.draws(step) for step in range(60)]
    for step, task in turns:
        plan.switch_to(task, step=step)
    seen: dict[str, list[int]] = {task: [] for task in sizes}
    for step in range(60):
        (draw,) = plan.draws(step)
        chosen = [task for begin, task in turns if begin <= step]
        assert draw.task == (list(sizes)[chosen[-1]] if chosen else "abc"[step % 3])
        if not chosen:
            assert draw.rows.tolist() == before[step][0].rows.tolist()
        seen[draw.task] += draw.rows.tolist()
    for task, rows in seen.items():
        for begin in range(0, len(rows), sizes[task]):
            one = rows[begin : begin + sizes[task]]
            assert len(set(one)) == len(one)


def recipe(encoder: Path, **more: Any) -> Recipe:
    stage = {
        "steps": 14,
        "batch": 8,
        "schedule": {"kind": "needs", "goals": {"sentiment": 0.4}},
        "optimiser": {"lr": 1e-3},
    }
    tree = {
        "name": "needs",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(encoder), "max_tokens": 24},
        "tasks": BLOCKS,
        "stages": [stage],
        "evaluation": {"every": 3},
        "checkpoint": {"every": 4},
        **more,
    }
    return Recipe.from_tree(tree, where="needs")


def test_each_block_trains_who_needed_it_and_resume_is_exact(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))

    def train(out: Path, listener: Any, *, resume: bool = False) -> None:
        train_recipe(
            recipe(tiny_encoder),
            data=sample_data,
            out=out,
            device="cpu",
            listener=listener,
            resume=resume,
        )

    class Pull(Silent):
        """Pulls the plug after a step, between two checkpoints."""

        def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None:
            if lines and lines[-1]["step"] == 11:
                raise SystemExit

    train(tmp_path / "whole", Silent())
    with pytest.raises(SystemExit):
        train(tmp_path / "sewn", Pull())
    train(tmp_path / "sewn", Silent(), resume=True)
    whole = (tmp_path / "whole" / "metrics.jsonl").read_bytes()
    assert (tmp_path / "sewn" / "metrics.jsonl").read_bytes() == whole
    wanted = None
    for line in map(json.loads, whole.splitlines()):
        if "dev" in line:
            wanted = neediest(SCHEDULES["needs"](goals={"sentiment": 0.4}), line["dev"], TASKS)
        elif wanted is not None:
            assert list(line["loss"]) == [wanted]
    assert wanted is not None
