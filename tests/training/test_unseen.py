"""Evaluation rows that must stay unseen: what training leaves out for them, and what it keeps."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.data.examples import read_examples
from tercet.data.sketch import SketchBuilder
from tercet.data.unseen import Unseen, read_pairs
from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

TRAIN = [
    ("Dev one!", "dev two", 0),  # a dev row, in other spelling
    ("a", "b", 1),
    ("b", "c", 1),
    ("b", "d", 1),
    ("e", "f", 1),
    ("a", "e", 0),
    ("sts one", "sts two", 0),
]
DEV = [("dev two", "dev one", 1), ("A", "c", 1), ("x", "y", 0)]


def write(path: Path, rows: list[tuple[str, str, int]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("q", "r", "same"), *rows])


def tree(encoder: Path, **top: Any) -> dict[str, Any]:
    data = {"train": "a.csv", "dev": "b.csv", "texts": ["q", "r"], "label": "same"}
    task = {
        "labels": ["no", "yes"],
        "bi": {
            "head": {"kind": "features", "features": ["u", "v"]},
            "objective": {"kind": "binary-cross-entropy"},
        },
    }
    return {
        "name": "mine",
        "summary": "",
        "encoder": {"name": str(encoder), "max_tokens": 24},
        "record_rows": True,
        "tasks": {
            "same": {**task, "data": data},
            "more": {"like": "same", "data": {**data, "train": "more.csv", "dev": []}},
        },
        "stages": [{"steps": 1, "batch": 4}],
        **top,
    }


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    write(tmp_path / "a.csv", TRAIN)
    write(tmp_path / "b.csv", DEV)
    write(tmp_path / "more.csv", [("a", "b", 1), ("g", "h", 0)])
    return tmp_path


def trained(tree: dict[str, Any], data: Path) -> tuple[tercet.Model, dict[str, Any]]:
    recipe = Recipe.from_tree(tree, where="mine")
    train_recipe(recipe, data=data, out=data / "run", device="cpu", listener=Silent())
    return tercet.load(data / "run"), json.loads((data / "run/summary.json").read_text("utf-8"))


def test_dev_rows_stay_unseen_over_all_tasks(tiny_encoder: Path, data: Path) -> None:
    model, summary = trained(tree(tiny_encoder, unseen={}), data)
    # a = b and b = c imply a = c. Leaving out the duplicates of a (one in each task) or of c (one)
    # separates them; those of b would be more.
    assert summary["left_out"]["same"] == {"evaluation rows": 1, "implying": 1}
    sketch = model.sketch
    assert sketch is not None
    columns = [[row[side] for row in DEV] for side in (0, 1)]
    assert not sketch.seen(columns).any()
    assert not sketch.implied(*columns).any()
    kept = [("b", "d"), ("e", "f"), ("a", "e"), ("sts one", "sts two"), ("g", "h")]
    assert sketch.seen(list(zip(*kept, strict=True))).all()


def test_without_the_key_only_what_was_left_out_before_is(tiny_encoder: Path, data: Path) -> None:
    model, summary = trained(tree(tiny_encoder), data)
    assert "left_out" not in summary
    assert model.sketch is not None
    assert model.sketch.seen([["dev two"], ["dev one"]]).all()
    assert model.sketch.implied(["a"], ["c"]).all()


def test_sets_are_left_out_except_by_tasks_that_keep_them(tiny_encoder: Path, data: Path) -> None:
    folder = data / "senteval/STS/STSBenchmark"
    folder.mkdir(parents=True)
    (folder / "sts-test.csv").write_text("a\tb\tc\t1\t5.0\tSTS two.\tsts one\n", "utf-8")
    without, _ = trained(tree(tiny_encoder, unseen={"sets": ["STS-B"]}), data)
    assert without.sketch is not None
    assert not without.sketch.seen([["sts one"], ["sts two"]]).any()
    unseen = {"sets": ["STS-B"], "keep": ["same"]}
    recipe = Recipe.from_tree(tree(tiny_encoder, unseen=unseen), where="mine")
    train_recipe(recipe, data=data, out=data / "kept", device="cpu", listener=Silent())
    kept = tercet.load(data / "kept").sketch
    assert kept is not None
    assert kept.seen([["sts one"], ["sts two"]]).all()
    assert not kept.seen([["dev two"], ["dev one"]]).any()


def test_unknown_tasks_and_missing_sets_are_named(tiny_encoder: Path, data: Path) -> None:
    with pytest.raises(TercetError, match=r"unseen\.keep names task `some`"):
        Recipe.from_tree(tree(tiny_encoder, unseen={"keep": ["some"]}), where="mine")
    with pytest.raises(TercetError, match=r"sts-test\.csv"):
        trained(tree(tiny_encoder, unseen={"sets": ["STS-B"]}), data)


def test_no_pair_of_quora_dev_is_implied_by_what_is_left(real_data: Path) -> None:
    tasks = Recipe.load("tercet/small").tasks
    dev = read_examples(tasks["paraphrase"], "dev", real_data).texts
    paraphrase = read_examples(tasks["paraphrase"], "train", real_data)
    more = read_examples(tasks["duplicates"], "train", real_data)
    assert paraphrase.labels is not None
    same = paraphrase.take(np.flatnonzero(paraphrase.labels == 1))
    duplicates = [same.texts, more.texts]
    unseen = Unseen(dev=[dev], sets=[], duplicates=duplicates)
    builder = SketchBuilder()
    left_out = 0
    for texts in duplicates:
        found = unseen.left_out(texts, keeps_sets=False)
        left_out += sum(found.counts().values())
        kept = np.flatnonzero(found.fresh).tolist()
        builder.add_duplicates(*([column[row] for row in kept] for column in texts))
    assert 15_000 < left_out < 20_000
    # A sketch takes a few other pairs for its own.
    assert builder.finish().implied(*dev).sum() < 20


def test_paws_is_unseen_by_its_dev_rows(real_data: Path) -> None:
    first, second = read_pairs("PAWS", real_data)
    assert len(first) == len(second) == 2_000


def test_changed_sentences_are_not_taken_for_known_duplicates(
    tiny_encoder: Path, data: Path
) -> None:
    recipe = tree(tiny_encoder)
    recipe["tasks"]["more"]["data"] |= {"train": "changed.csv", "changes": {"pairs": 9}}
    recipe["tasks"]["more"]["teacher"] = {"folder": str(data / "run"), "weight": 1.0}
    write(data / "changed.csv", [("It is red", "It was blue", 1), ("It is red", "So be it 5", 1)])
    trained(tree(tiny_encoder), data)
    train_recipe(
        Recipe.from_tree(recipe, where="mine"),
        data=data,
        out=data / "changed",
        device="cpu",
        listener=Silent(),
    )
    sketch = tercet.load(data / "changed").sketch
    assert sketch is not None
    assert sketch.seen([["It is red"], ["It is not red"]]).all()
    assert not sketch.implied(["It is red"], ["It was not blue"]).any()
    assert not sketch.implied(["It is not red"], ["So be it 5"]).any()
