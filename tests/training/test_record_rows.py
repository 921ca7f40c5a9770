"""A run that records its rows: the sketch in the model folder, and what evaluation says by it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.evaluation.evaluation import evaluate
from tercet.folders.seen_file import SEEN_FILE
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

TRAIN = [("one", "two", 1), ("two", "three", 1), ("four", "five", 0), ("six", "seven", 0)]
DEV = [("One!", "TWO", 1), ("three", "one", 1), ("six", "five", 0), ("eight", "nine", 0)]


def write(path: Path, rows: list[tuple[str, str, int]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("q", "r", "same"), *rows])


def tree(encoder: Path, **top: Any) -> dict[str, Any]:
    return {
        "name": "mine",
        "summary": "",
        "encoder": {"name": str(encoder), "max_tokens": 24},
        "tasks": {
            "same": {
                "data": {"train": "a.csv", "dev": "b.csv", "texts": ["q", "r"], "label": "same"},
                "labels": ["no", "yes"],
                "bi": {
                    "head": {"kind": "features", "features": ["u", "v"]},
                    "objective": {"kind": "binary-cross-entropy"},
                },
            }
        },
        "stages": [{"steps": 1, "batch": 4}],
        **top,
    }


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "a.csv", TRAIN)
    write(tmp_path / "b.csv", DEV)
    return tmp_path


def trained(tree: dict[str, Any], data: Path, name: str) -> tercet.Model:
    recipe = Recipe.from_tree(tree, where="mine")
    train_recipe(recipe, data=data, out=data / name, device="cpu", listener=Silent())
    return tercet.load(data / name, device="cpu")


def test_metrics_come_with_and_without_seen_rows(tiny_encoder: Path, data: Path) -> None:
    model = trained(tree(tiny_encoder, record_rows=True), data, "run")
    assert model.sketch is not None
    assert model.sketch.rows == 4
    result = evaluate(model, data, suites=["tasks"])
    task = result.to_json()["suites"]["tasks"]["tasks"]["same"]
    assert task["seen"] == {"rows": 1, "implied": 1}
    mode = task["modes"]["bi"]
    unseen = np.array(mode["predictions"])[2:].argmax(axis=1) == mode["labels"][2:]
    assert mode["without_seen_rows"]["accuracy"]["value"] == unseen.mean()
    assert (
        "same: 1 of 4 rows were trained on, and 1 more are implied by duplicates." in result.notes
    )
    (table,) = [t for t in result.suites["tasks"].tables() if "Without rows" in t.caption]
    assert [cell.text for cell in table.rows[0]][:2] == ["same", "accuracy"]
    assert table.rows[0][-1].text == "2"


def test_a_run_records_nothing_unless_it_is_asked_to(tiny_encoder: Path, data: Path) -> None:
    model = trained(tree(tiny_encoder), data, "run")
    assert not list((data / "run").rglob(SEEN_FILE))
    assert model.sketch is None
    result = evaluate(model, data, suites=["tasks"])
    assert result.to_json()["suites"]["tasks"]["tasks"]["same"]["seen"] is None


def test_rows_held_out_are_not_recorded(tiny_encoder: Path, data: Path) -> None:
    recipe = tree(tiny_encoder, record_rows=True)
    recipe["tasks"]["same"]["held_out"] = 0.25
    sketch = trained(recipe, data, "run").sketch
    assert sketch is not None
    assert sketch.rows == 3


def test_a_model_knows_the_rows_of_the_one_that_it_starts_from(
    tiny_encoder: Path, data: Path
) -> None:
    trained(tree(tiny_encoder, record_rows=True), data, "run")
    write(data / "a.csv", [("ten", "eleven", 1), ("twelve", "ten", 0)])
    again = trained(tree(data / "run"), data, "again").sketch
    assert again is not None
    # It did not record rows of its own.
    assert again.seen([["one", "ten"], ["two", "eleven"]]).tolist() == [True, False]


def test_saving_exporting_and_adding_a_task_keep_the_sketch(tiny_encoder: Path, data: Path) -> None:
    model = trained(tree(tiny_encoder, record_rows=True), data, "run")
    model.save(data / "copy")
    assert (data / "copy" / SEEN_FILE).read_bytes() == (data / "run/model" / SEEN_FILE).read_bytes()
    added = tree(tiny_encoder, onto=str(data / "run"), record_rows=True)
    del added["encoder"]
    added["tasks"] = {"other": added["tasks"]["same"]}
    added["stages"][0]["freeze"] = ["encoder"]
    write(data / "a.csv", [("ten", "eleven", 1), ("twelve", "ten", 0)])
    both = trained(added, data, "both").sketch
    assert both is not None
    assert both.seen([["one", "ten", "x"], ["two", "eleven", "y"]]).tolist() == [True, True, False]
