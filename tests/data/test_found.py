"""Labels and ranges that a recipe leaves to its training files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tercet.data.found import found_labels, with_found_labels
from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.specs import TaskSpec

MakeTask = Callable[..., TaskSpec]
CLASSES = {"single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}}}
GRADES = {"single": {"head": {"kind": "mlp"}, "objective": {"kind": "mean-squared-error"}}}


def recipe_of(task: dict[str, Any], **others: Any) -> Recipe:
    tree = {
        "name": "mine",
        "summary": "One task",
        "encoder": {"name": "all-minilm-l6-v2"},
        "tasks": {"team": {"data": {"train": "a.csv", "texts": 1, "label": 2}, **task}, **others},
        "stages": [{"epochs": 1}],
    }
    return Recipe.from_tree(tree, where="mine.toml")


def write(folder: Path, *labels: str, header: bool = False) -> None:
    lines = [f"text {row},{label}\n" for row, label in enumerate(labels)]
    (folder / "a.csv").write_text("".join(["text,label\n"] * header + lines), "utf-8")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["delivery", "Billing", "returns", "delivery"], ["Billing", "delivery", "returns"]),
        (["10", "2", "1", "2", "10"], ["1", "2", "10"]),
        (["1", "0", "1"], ["0", "1"]),
        (["true", "false"], ["false", "true"]),
        (["1.0", "2", "1"], ["1.0", "2"]),
        (["none", "3", "-1"], ["-1", "3", "none"]),
        (["a", "", "b"], ["a", "b"]),
    ],
)
def test_classes_are_the_labels_of_the_training_files(
    tmp_path: Path, cells: list[str], labels: list[str]
) -> None:
    write(tmp_path, *cells, header=True)
    recipe = with_found_labels(recipe_of(CLASSES), tmp_path)
    assert recipe.tasks["team"].labels == labels
    assert recipe.tasks["team"].lacks is None
    written = tmp_path / "recipe.toml"
    written.write_text(recipe.to_toml(), "utf-8")
    assert Recipe.load(written) == recipe


def test_a_range_is_from_the_lowest_to_the_highest_label(tmp_path: Path) -> None:
    write(tmp_path, "3", "1", "9.5", "2", header=True)
    task = with_found_labels(recipe_of(GRADES), tmp_path).tasks["team"]
    assert (task.range, task.labels) == ((1.0, 9.5), None)


def test_what_is_listed_is_kept_and_no_file_is_read(tmp_path: Path) -> None:
    listed = recipe_of({**CLASSES, "labels": ["b", "a"]})
    assert with_found_labels(listed, tmp_path) is listed


def test_a_task_like_another_has_its_labels(tmp_path: Path) -> None:
    write(tmp_path, "x", "y", "z", header=True)
    more = {"data": {"train": "b.csv", "texts": 1, "label": 2}, "like": "team"}
    recipe = with_found_labels(recipe_of(CLASSES, more=more), tmp_path)
    assert recipe.tasks["more"].labels == ["x", "y", "z"]


def test_a_label_map_names_the_classes(tmp_path: Path) -> None:
    data = {"train": "a.csv", "texts": 1, "label": 2, "label_map": {"yes": 1, "no": 0, "nope": 0}}
    recipe = with_found_labels(recipe_of({**CLASSES, "data": data}), tmp_path)
    assert recipe.tasks["team"].labels == ["no", "yes"]
    write(tmp_path, "low", "high", "mid", header=True)
    graded = {**data, "label_map": {"low": 1, "high": 5}}
    recipe = with_found_labels(recipe_of({**GRADES, "data": graded}), tmp_path)
    assert recipe.tasks["team"].range == (1.0, 5.0)
    write(tmp_path, "1", "2", "3.0", header=True)
    graded = {**data, "label_map": {"1": 1, "2": 2, "3": 9}}
    recipe = with_found_labels(recipe_of({**GRADES, "data": graded}), tmp_path)
    assert recipe.tasks["team"].range == (1.0, 9.0)  # numbers are known in any spelling


def test_several_labels_are_collected_over_all_cells(make_task: MakeTask, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('text,tags\nx,"spam; billing"\ny,\nz,refund\n', "utf-8")
    rows = [["spam", "billing"], [], ["refund"]]
    pq.write_table(pa.table({"text": ["x", "y", "z"], "tags": rows}), tmp_path / "a.parquet")
    lines = [{"text": text, "tags": tags} for text, tags in zip("xyz", rows, strict=True)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for name, separator in (("a.csv", ";"), ("a.parquet", None), ("a.jsonl", None)):
        task = make_task("tags", train=name, texts="text", label="tags", label_separator=separator)
        assert found_labels(task, tmp_path) == ["billing", "refund", "spam"]


@pytest.mark.parametrize(
    ("task", "cells", "message"),
    [
        (CLASSES, [f"word {n}" for n in range(1001)], "line 1002: column `2` has more than 1,000"),
        (CLASSES, ["a", "a"], "a.csv: column `2` has only one label, 'a'"),
        (CLASSES, ["", ""], "a.csv: column `2` has no labels"),
        (GRADES, ["1", "good"], "line 3: column `2` is 'good', expected a number"),
        (GRADES, ["1", "inf"], "expected a number"),
        (GRADES, ["2", "2"], "a.csv: column `2` has no two different grades"),
        ({**CLASSES, "data": {"train": "a.csv", "texts": 1}}, ["a", "b"], "needs `data.label`"),
        ({**CLASSES, "data": {"train": "b.csv", "texts": 1, "label": 2}}, ["a"], "b.csv: no such"),
        (
            {"single": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}}},
            ["a", "b", "c"],
            "labels found in the data: `tasks.team`: objective `binary-cross-entropy` needs",
        ),
        ({**CLASSES, "metric": "f1"}, ["a", "b", "c"], "`metric` 'f1' does not fit"),
        ({**CLASSES, "prior": 0.5}, ["a", "b", "c"], "needs"),
    ],
)
def test_what_cannot_be_labels_is_told(
    tmp_path: Path, task: dict[str, Any], cells: list[str], message: str
) -> None:
    write(tmp_path, *cells, header=True)
    with pytest.raises(TercetError) as caught:
        with_found_labels(recipe_of(task), tmp_path)
    assert message in str(caught.value)
