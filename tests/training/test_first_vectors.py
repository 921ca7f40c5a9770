"""Vectors that are kept are those of the encoder, its settings and the rows that a training has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.recipe import Recipe
from tercet.training.distributed import World
from tercet.training.first_vectors import FirstVectors, untouched_stages
from tercet.training.listener import Silent
from tercet.training.preparation import Prepared, prepare

SOLVE: Any = {"name": "heads", "solve": True, "freeze": ["encoder"]}
TUNE: Any = {"name": "tune", "steps": 2}
TASK: Any = {
    "data": {"layout": "cs224n-sst", "limit": 12},
    "labels": ["0", "1", "2", "3", "4"],
    "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path))


def prepared(data: Path, encoder: Path, *stages: Any, limit: int = 12, **options: Any) -> Prepared:
    task = {**TASK, "data": {**TASK["data"], "limit": limit}}
    tree = {
        "name": "first",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(encoder), "max_tokens": 40, **options},
        "tasks": {"sentiment": task},
        "stages": list(stages or [SOLVE]),
    }
    recipe = Recipe.from_tree(tree, where="first")
    return prepare(recipe, data=data, world=World.join("cpu"), listener=Silent())


def test_another_encoder_or_way_to_read_or_row_is_encoded_anew(
    sample_data: Path, tiny_encoder: Path, tiny_mpnet: Path
) -> None:
    first = FirstVectors(lambda: 0.0)
    plain = prepared(sample_data, tiny_encoder)
    # The table is the same, and the encoder's own tokens leave no room for the end of that text.
    longest = int(plain.tables["sentiment"].columns[0].lengths.max())
    assert longest <= 40 - 2
    every = [
        plain,
        prepared(sample_data, tiny_encoder, pooling="cls"),
        prepared(sample_data, tiny_encoder, max_tokens=longest),
        prepared(sample_data, tiny_encoder, layers=1),
        prepared(sample_data, tiny_encoder, limit=11),
        prepared(sample_data, tiny_mpnet),
    ]
    for each in [*every, *every]:
        rows = first.of(each)["sentiment", "single"]
        vectors = each.engine(bf16=False).vectors(each.tables["sentiment"].columns[0])
        np.testing.assert_array_equal(rows.columns[0], vectors)


def test_the_same_rows_are_encoded_once_and_their_time_is_known(
    sample_data: Path, tiny_encoder: Path
) -> None:
    ticks = iter(range(0, 1000, 3))
    first = FirstVectors(lambda: float(next(ticks)))
    linear = prepared(sample_data, tiny_encoder)
    tuned = prepared(sample_data, tiny_encoder, SOLVE, TUNE, {**SOLVE, "name": "last"})
    key = ("sentiment", "single")
    assert first.of(linear)[key] is first.of(tuned)[key]
    assert first.seconds(linear, *key) == first.seconds(tuned, *key) == 3.0
    assert next(ticks) == 6


def test_only_heads_that_are_fitted_before_tuning_have_them(
    sample_data: Path, tiny_encoder: Path
) -> None:
    tuned = prepared(sample_data, tiny_encoder, TUNE, SOLVE)
    assert FirstVectors(lambda: 0.0).of(tuned) == {}
    assert untouched_stages(tuned.recipe.stages) == 0
    assert untouched_stages(prepared(sample_data, tiny_encoder, SOLVE, TUNE).recipe.stages) == 1
