"""Stages of a run: what each scores, which weights it leaves to the next, and what is recorded."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.specs import StageSpec
from tercet.training.assessment import Assessment
from tercet.training.listener import Silent
from tercet.training.loop import Position, StageScore
from tercet.training.run import train_recipe

MLP = {"kind": "mlp", "dropout": 0.0}
TASKS: dict[str, Any] = {
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
FAST = {"lr": 3e-3, "warmup": 0.0, "decay": "constant"}


@pytest.fixture
def run(tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))

    def train(*stages: dict[str, Any], **blocks: Any) -> tuple[dict[str, Any], list[Any]]:
        """The summary of a run of these stages, and its scores on dev."""
        tree = {
            "name": "stages",
            "summary": "A recipe of the tests",
            "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
            "tasks": TASKS,
            "stages": [{"batch": 8, "optimiser": FAST, **stage} for stage in stages],
            **blocks,
        }
        out = tmp_path / "run"
        recipe = Recipe.from_tree(tree, where="stages")
        train_recipe(recipe, data=sample_data, out=out, device="cpu", listener=Silent())
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return json.loads((out / "summary.json").read_text()), [x for x in lines if "dev" in x]

    return train


def test_accumulated_batches_are_one_larger_batch(
    run: Any, tiny_encoder: Path, tmp_path: Path
) -> None:
    """In losses, gradients and steps; a pass of 40 rows ends with 8 of them."""
    encoder = {"name": str(tiny_encoder), "max_tokens": 24}
    encoder |= {"dropout": 0.0, "attention_dropout": 0.0}
    found = []
    for lengths in ({"batch": 16}, {"batch": 4, "accumulate": 4}, {"batch": 4}):
        run({"epochs": 1.5, "schedule": {"kind": "sequential"}, **lengths}, encoder=encoder)
        lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in lines if "norm" in json.loads(line)]
        found.append([value for each in steps for value in (*each["loss"].values(), each["norm"])])
        shutil.rmtree(tmp_path / "run")
    whole, accumulated, small = found
    assert accumulated == pytest.approx(whole, rel=1e-3)
    assert len(whole) == 2 * round(1.5 * 6)
    assert len(small) > 3 * len(whole)


def test_every_stage_ends_with_a_score_of_every_task(run: Any) -> None:
    summary, _ = run(
        {"name": "one", "tasks": ["sentiment"], "steps": 3},
        {"name": "two", "tasks": ["similarity"], "steps": 4},
        evaluation={"every": 0, "keep": "last"},
    )
    assert [(s["stage"], s["step"]) for s in summary["stages"]] == [("one", 3), ("two", 7)]
    assert all(s["dev"].keys() == {"sentiment", "similarity"} for s in summary["stages"])
    assert summary["stages"][1]["dev"] == summary["dev"]
    assert summary["stages"][0]["dev"] != summary["dev"]


def test_a_stage_leaves_its_best_by_its_own_score(run: Any) -> None:
    own = {"tasks": ["sentiment"], "score": "sentiment.accuracy", "every": 1}
    summary, scores = run(
        {"name": "one", "tasks": ["sentiment"], "steps": 8, "evaluation": own},
        {"name": "two", "tasks": ["similarity"], "steps": 1, "freeze": ["encoder"]},
        evaluation={"keep": "last"},
    )
    first = [line for line in scores if line["stage"] == "one"]
    assert all(line["dev"].keys() == {"sentiment"} for line in first)
    best = max(first, key=lambda line: (line["score"], -line["dev_loss"]))
    assert best["step"] < 8, "the test must show that the best is not the last"
    assert summary["stages"][0]["step"] == best["step"]
    # The second stage froze what sentiment reads: it began from the best of the first.
    assert summary["dev"]["sentiment"] == best["dev"]["sentiment"]


def test_of_equal_scores_the_lower_loss_is_better(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = [(0.5, 1.0), (0.5, 0.8), (0.5, 0.9), (0.5, 0.8), (0.4, 0.1)]
    left = iter(planned)
    real = Assessment.score

    def score(self: Assessment, stage: StageSpec) -> StageScore:
        value, loss = next(left)
        return replace(real(self, stage), score=value, loss=loss)

    monkeypatch.setattr(Assessment, "score", score)
    summary, scores = run({"name": "one", "steps": 5}, evaluation={"every": 1, "patience": 3})
    assert [(line["score"], line["dev_loss"]) for line in scores] == planned
    assert (summary["kept"], summary["score"]) == (2, 0.5)


def test_checkpoints_without_a_loss_keep_the_first_of_equal_scores() -> None:
    old = Position.restore({"stage": 0, "step": 3, "total": 3, "best": 0.5, "best_step": 2})
    assert not old.is_better(0.5, 0.0)
    assert old.is_better(0.6, 9.0)


def test_a_stage_that_scores_what_nobody_predicts_is_a_mistake(run: Any) -> None:
    with pytest.raises(TercetError, match=r"evaluation\.tasks names task `similarty`"):
        run({"steps": 1, "evaluation": {"tasks": ["similarty"]}})
    with pytest.raises(TercetError, match=r"'similarity\.pearson' should be one of"):
        run({"steps": 1, "evaluation": {"tasks": ["sentiment"], "score": "similarity.pearson"}})
