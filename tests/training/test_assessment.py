"""Dev rows are encoded once by the weights that a training leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tercet.infer.engine import Engine
from tercet.model import load
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

SOLVE: Any = {"name": "heads", "solve": True, "freeze": ["encoder"]}
# Each step makes the model worse, so that an earlier one is kept.
WORSE: Any = {"name": "worse", "steps": 3, "optimiser": {"lr": 1e-9, "head_lr": 3.0}}
TASK: Any = {
    "data": {"layout": "cs224n-sst", "limit": 80},
    "labels": ["0", "1", "2", "3", "4"],
    "held_out": 0.25,
    "single": {
        "head": {"kind": "mlp", "normalise": True, "dropout": 0.0},
        "objective": {"kind": "cross-entropy"},
    },
}


@pytest.mark.parametrize("stage", [SOLVE, WORSE], ids=["last", "earlier"])
def test_dev_rows_are_encoded_once_by_the_final_weights(
    tiny_encoder: Path,
    sample_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: Any,
) -> None:
    """For their scores, before and after calibration, and for warnings."""
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    counts: list[int] = []
    encode = Engine._run

    def counted(engine: Engine, how: Any, columns: Any, rows: Any, *further: Any) -> Any:
        counts.append(len(rows))
        return encode(engine, how, columns, rows, *further)

    monkeypatch.setattr(Engine, "_run", counted)
    tree = {
        "name": "assessed",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
        "tasks": {"sentiment": TASK},
        "stages": [stage],
        "evaluation": {"every": 1},
    }
    recipe = Recipe.from_tree(tree, where="assessed")
    out = tmp_path / "run"
    train_recipe(recipe, data=sample_data, out=out, device="cpu", listener=Silent())
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    dev, train, held_out = summary["rows"]["sentiment"], 60, 20
    baselines, solve = train + dev, train if stage is SOLVE else 0
    is_last = summary["kept"] == summary["steps"]
    assert is_last == (stage is SOLVE)
    scores = dev * (summary["steps"] if is_last else summary["steps"] + 1)
    assert sum(counts) == baselines + solve + scores + held_out
    metrics = load(out, device="cpu").info.metrics
    assert metrics == summary["dev"]
