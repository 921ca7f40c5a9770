"""Pairs that train in both orders of their texts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet
from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.text.tokens import Pieces
from tercet.training.distributed import World
from tercet.training.listener import Silent
from tercet.training.preparation import Prepared, prepare
from tercet.training.run import train_recipe

PAIRS = [("a good film", "a film that is good", 1), ("the man sings", "a dog", 0)]
CROSS = {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("q", "r", "same"), *PAIRS])
    return tmp_path


def tree(encoder: Path, **task: Any) -> dict[str, Any]:
    source = {"train": "a.csv", "dev": "a.csv", "texts": ["q", "r"], "label": "same"}
    same = {"data": {**source, "both_orders": True}, "labels": ["no", "yes"], "cross": CROSS}
    return {
        "name": "mine",
        "summary": "",
        "encoder": {"name": str(encoder), "max_tokens": 24},
        "record_rows": True,
        "tasks": {"same": {**same, **task}},
        "stages": [{"steps": 2, "batch": 4}],
    }


def prepared(tree: dict[str, Any], data: Path) -> Prepared:
    recipe = Recipe.from_tree(tree, where="mine")
    world = World(rank=0, size=1, device=torch.device("cpu"))
    return prepare(recipe, data=data, world=world, listener=Silent())


def texts(pieces: Pieces) -> list[list[int]]:
    return [ids.tolist() for ids in np.split(pieces.ids, pieces.offsets[1:-1])]


def test_every_training_row_comes_in_both_orders_and_dev_as_it_is(
    tiny_encoder: Path, data: Path
) -> None:
    ready = prepared(tree(tiny_encoder), data)
    table, dev = ready.tables["same"], ready.dev["same"]
    first, second = (texts(column) for column in table.columns)
    assert first[:2] == second[2:]
    assert second[:2] == first[2:]
    assert first[:2] != second[:2]
    assert table.labels is not None
    assert table.labels.tolist() == [1, 0, 1, 0]
    assert len(dev) == 2


def test_a_teacher_reads_both_orders(tiny_encoder: Path, data: Path) -> None:
    recipe = Recipe.from_tree(tree(tiny_encoder), where="mine")
    train_recipe(recipe, data=data, out=data / "run", device="cpu", listener=Silent())
    model = tercet.load(data / "run", device="cpu")
    assert model.sketch is not None
    assert model.sketch.rows == 2  # each pair once
    taught = tree(tiny_encoder, teacher={"folder": str(data / "run"), "weight": 1.0})
    given = prepared(taught, data).targets["same"]
    pairs = [(q, r) for q, r, _ in PAIRS]
    answers = model.predict("same", [*pairs, *((r, q) for q, r in pairs)])
    expected = [answer.probabilities for answer in answers]
    np.testing.assert_allclose(given, expected, atol=1e-5)


def test_single_texts_have_no_second_order(tiny_encoder: Path) -> None:
    recipe = tree(tiny_encoder)
    task = recipe["tasks"]["same"]
    task["single"] = task.pop("cross")
    with pytest.raises(TercetError, match=r"`data\.both_orders` needs a head that reads pairs"):
        Recipe.from_tree(recipe, where="mine")
