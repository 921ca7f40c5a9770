"""The moving average of the weights: by hand, on resume, and in what a stage leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tercet
from tercet.recipe import Recipe
from tercet.training.average import Average
from tercet.training.listener import Silent
from tercet.training.run import train_recipe


def test_by_hand_and_put_back() -> None:
    weight, still = nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([7.0]))
    optimiser = torch.optim.AdamW([weight, still], lr=0.5, weight_decay=0.0)
    average = Average(optimiser, decay=0.5)
    expected = None
    for step in range(20):
        weight.grad = torch.tensor([1.0, -1.0])
        optimiser.step()
        average.update(step=step)
        decay = min(0.5, (1 + step) / (10 + step))
        now = weight.detach().clone()
        expected = now if expected is None else decay * expected + (1.0 - decay) * now
    last = weight.detach().clone()
    with average.applied():
        torch.testing.assert_close(weight.detach(), expected)
        assert still.item() == 7.0
    assert torch.equal(weight.detach(), last)
    average.leave()
    torch.testing.assert_close(weight.detach(), expected)


TASKS = {
    "sentiment": {
        "data": {"layout": "cs224n-sst", "limit": 30},
        "labels": ["0", "1", "2", "3", "4"],
        "single": {
            "head": {"kind": "mlp", "dropout": 0.1},
            "objective": {"kind": "cross-entropy"},
        },
    }
}


@pytest.fixture
def train(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))

    def run(out: str, *, resume: bool = False, keep: str = "last", **stage: Any) -> Path:
        tree = {
            "name": "averaged",
            "summary": "A recipe of the tests",
            "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
            "tasks": TASKS,
            "stages": [{"steps": 12, "batch": 6, "optimiser": {"lr": 3e-3}, **stage}],
            "evaluation": {"every": 3, "keep": keep},
            "checkpoint": {"every": 2, "keep": 9},
        }
        recipe = Recipe.from_tree(tree, where="averaged")
        folder = tmp_path / out
        train_recipe(
            recipe, data=sample_data, out=folder, resume=resume, device="cpu", listener=Silent()
        )
        return folder

    return run


def steps(folder: Path) -> list[Any]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def test_training_goes_on_from_the_weights_and_leaves_their_average(
    train: Callable[..., Path],
) -> None:
    plain, averaged = train("plain"), train("averaged", average=0.9)
    assert steps(plain) == steps(averaged)
    ours, theirs = (tercet.load(folder).network.state_dict() for folder in (plain, averaged))
    assert not all(torch.equal(ours[name], theirs[name]) for name in ours)
    summary = json.loads((averaged / "summary.json").read_text())
    assert summary["stages"][-1]["dev"] == summary["dev"]


@pytest.mark.parametrize("keep", ["last", "best"])
def test_resume_is_exact(train: Callable[..., Path], tmp_path: Path, keep: str) -> None:
    whole = train("whole", average=0.9, keep=keep)
    sewn = tmp_path / "sewn"
    shutil.copytree(whole, sewn)
    shutil.rmtree(sewn / "model")
    (sewn / "summary.json").unlink()
    for step in (8, 10, 12):
        shutil.rmtree(sewn / "checkpoints" / f"step-{step:08d}")
    train("sewn", resume=True, average=0.9, keep=keep)
    for file in ("metrics.jsonl", "model/model.safetensors", "model/heads.safetensors"):
        assert (sewn / file).read_bytes() == (whole / file).read_bytes()
