"""Near pairs of class 0 that are added for ranking."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.errors import TercetError
from tercet.infer.engine import Engine
from tercet.recipe import Recipe
from tercet.search.rerank import Cross
from tercet.specs import NegativesSpec
from tercet.training.listener import Silent
from tercet.training.negatives import make_negatives
from tercet.training.run import train_recipe

PAIRS = [("a good film", "a fine film", 1), ("a fine film", "a nice film", 1)]
PAIRS += [(f"the {word} is here", f"here is the {word}", 1) for word in ("man", "boy", "dog")]
PAIRS += [("a bad film", "a worse film", 0)]
HEAD = {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("q", "r", "same"), *PAIRS])
    return tmp_path


def task(**negatives: int) -> dict[str, Any]:
    data = {"train": "a.csv", "texts": ["q", "r"], "label": "same", "negatives": negatives}
    return {"data": data, "labels": ["other", "same"], "cross": HEAD}


def tree(encoder: Path, ranking: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "mine",
        "summary": "",
        "encoder": {"name": str(encoder), "max_tokens": 24},
        "record_rows": True,
        "tasks": {"ranking": ranking},
        "stages": [{"steps": 2, "batch": 4}],
    }


def test_negatives_are_near_and_not_known_duplicates(
    make_network, make_table, tokenizer, data
) -> None:
    block = {"ranking": task(per_pair=2, among=3)}
    engine = Engine(make_network(block), tokenizer.template, 24, bf16=False)
    first, second, labels = (list(column) for column in zip(*PAIRS, strict=True))
    table = make_table(first, second, labels=labels)
    spec = NegativesSpec(per_pair=2, among=3)
    rows, others = make_negatives(table, spec, engine=engine, listener=Silent())
    assert np.bincount(rows, minlength=6).tolist() == [2, 2, 2, 2, 2, 0]
    films = {"a good film", "a fine film", "a nice film"}
    for row, other in zip(rows.tolist(), others.tolist(), strict=True):
        assert second[other] != second[row]
        assert not (first[row] in films and second[other] in films)
    again = make_negatives(table, spec, engine=engine, listener=Silent())
    assert np.array_equal(again, [rows, others])
    vectors = engine.vectors(table.columns[1])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = engine.vectors(table.columns[0])
    cosines = (queries / np.linalg.norm(queries, axis=1, keepdims=True)) @ units.T
    known = [{0, 1} if row < 2 else {row} for row in range(6)]
    for row, other in zip(rows.tolist(), others.tolist(), strict=True):
        ranked = [place for place in np.argsort(-cosines[row]) if place not in known[row]]
        assert other in ranked[:3]


def test_a_head_trained_on_them_reranks(tiny_encoder: Path, data: Path) -> None:
    recipe = Recipe.from_tree(tree(tiny_encoder, task(per_pair=2, among=3)), where="mine")
    train_recipe(recipe, data=data, out=data / "run", device="cpu", listener=Silent())
    model = tercet.load(data / "run")
    assert Cross(model, ("ranking", "similarity")).task == "ranking"
    assert model.sketch is not None
    assert model.sketch.rows == 16
    # Known duplicates are those of the file, and none of the pairs that were added.
    assert model.sketch.implied(["a good film"], ["a nice film"]).all()
    assert not model.sketch.implied(["a good film"], ["here is the man"]).any()


def test_what_does_not_fit_is_named(tiny_encoder: Path, data: Path) -> None:
    graded = {**task(), "labels": None, "range": [0, 1]}
    graded["cross"] = {**HEAD, "objective": {"kind": "mean-squared-error"}}
    with pytest.raises(TercetError, match="need a task with two labels"):
        Recipe.from_tree(tree(tiny_encoder, graded), where="mine")
    with pytest.raises(TercetError, match="without `held_out`"):
        Recipe.from_tree(tree(tiny_encoder, {**task(), "held_out": 0.1}), where="mine")
    recipe = Recipe.from_tree(tree(tiny_encoder, task(among=9)), where="mine")
    with pytest.raises(TercetError, match=r"`data\.negatives\.among` is 9, but there are only 6"):
        train_recipe(recipe, data=data, out=data / "run", device="cpu", listener=Silent())


def test_a_cut_encoder_finds_near_pairs_by_all_of_its_layers(
    tiny_encoder: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers: list[int] = []

    def noted(*arguments: Any, engine: Engine, **keys: Any) -> Any:
        layers.append(engine.network.encoder.config.layers)
        return make_negatives(*arguments, engine=engine, **keys)

    monkeypatch.setattr("tercet.training.training_rows.make_negatives", noted)
    recipe = tree(tiny_encoder, task(per_pair=1, among=2))
    recipe["encoder"]["layers"] = 1
    checked = Recipe.from_tree(recipe, where="mine")
    train_recipe(checked, data=data, out=data / "run", device="cpu", listener=Silent())
    assert layers == [2]
    assert tercet.load(data / "run").network.encoder.config.layers == 1
