"""Every recipe of the package, by its name, from data to a model that predicts."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tercet
from tercet.recipe import BundledRecipe, Recipe, bundled, find_bundled
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

ROWS = 12
WORDS = ["the film is fine", "a dull plot", "how do i learn the guitar?", "rain falls on the roof"]
SENTENCES = [f"{WORDS[i % 4]} and {WORDS[(i + i // 4 + 1) % 4]}" for i in range(ROWS)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> Path:
    """The sample, and a few rows of every other layout that recipes read."""
    folder = tmp_path_factory.mktemp("data")
    for file in sample_data.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    for split in ("train", "dev"):
        write_course(folder / f"ids-cfimdb-{split}.csv", "sentiment", 1, ["0", "1"])
    write_course(folder / "sst-train-phrases.csv", "sentiment", 1, list("01234"))
    write_course(folder / "quora-positives.csv", "is_duplicate", 2, ["1.0"])
    words = ["entailment", "neutral", "contradiction", "not_entailment"]
    sources = [
        "ni_snli_task184",
        "nyu_mnli_train",
        "ni_mnli_task200",
        "fever_val",
        "ni_snli_task190",
    ]
    pairs = [(*texts(i, 2), words[i % 4], sources[i % 5]) for i in range(ROWS)]
    triples = [(*texts(i, 3), sources[i % 5]) for i in range(ROWS)]
    write_bare(folder / "nli" / "pairs.tsv", pairs)
    write_bare(folder / "nli" / "triples.tsv", triples)
    write_bare(folder / "nli" / "eval" / "snli-dev.tsv", pairs)
    paws = [(str(i), f"{WORDS[0]} {i}", f"{i} {WORDS[0]}", str(i % 2)) for i in range(ROWS)]
    write_bare(folder / "paws" / "dev.tsv", paws)
    write_bare(folder / "unlabelled" / "sentences.txt", [(text,) for text in SENTENCES])
    return folder


def texts(first: int, count: int) -> list[str]:
    return [SENTENCES[(first + i) % ROWS] for i in range(count)]


def write_course(path: Path, label: str, columns: int, labels: list[str]) -> None:
    names = ["sentence"] if columns == 1 else ["sentence1", "sentence2"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["", "id", *names, label])
        for i in range(ROWS):
            writer.writerow([i, f"row{i}", *texts(i, columns), labels[i % len(labels)]])


def write_bare(path: Path, rows: list[tuple[str, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")


def shortened(bundle: BundledRecipe, encoder: Path, *, teachers: Path) -> Recipe:
    """The recipe on a tiny encoder and few rows, two steps a stage; all else as it is.

    teachers: where those that recipes make lie, by name
    """
    tree: dict[str, Any] = tomllib.loads(bundle.text)
    tree["encoder"] |= {"name": str(encoder), "max_tokens": 24}
    if "layers" in tree["encoder"]:
        tree["encoder"]["layers"] = 1
    if "unseen" in tree:
        tree["unseen"]["sets"] = ["PAWS"]
    if "widths" in tree["encoder"]:
        tree["encoder"]["widths"] = [8, 16]
    if "depths" in tree["encoder"]:
        tree["encoder"]["depths"]["layers"] = [1]
    tree["checkpoint"] = {"every": 0}
    for task in tree["tasks"].values():
        task["data"]["limit"] = ROWS
        if "pairs" in task["data"]:
            task["data"]["pairs"] = {"random": 4, "nearest": 8, "among": 2}
        if "negatives" in task["data"]:
            task["data"]["negatives"] = {"per_pair": 1, "among": 2}
        # The few sentences of this test have only some words in common.
        task["data"].pop("overlap", None)
        if (teacher := task.get("teacher")) is not None:
            made = teachers / teacher["recipe"] if "recipe" in teacher else encoder
            teacher["folder"] = str(made)
    for stage in tree["stages"]:
        stage.pop("epochs", None)
        stage |= {"batch": 4} if stage.get("solve") else {"steps": 2, "batch": 4}
    return Recipe.from_tree(tree, where=bundle.name)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def teachers(
    tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path, data: Path, cache: Path
) -> Path:
    """The runs of all recipes that teach in others."""
    folder = tmp_path_factory.mktemp("teachers")
    tasks = [task for bundle in bundled() for task in bundle.parse().tasks.values()]
    names = {task.teacher.recipe for task in tasks if task.teacher and task.teacher.recipe}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERCET_CACHE", str(cache))
        for name in sorted(names):
            recipe = shortened(find_bundled(name), tiny_encoder, teachers=folder)
            out = folder / name
            train_recipe(recipe, data=data, out=out, device="cpu", listener=Silent())
    return folder


@pytest.mark.parametrize("bundle", bundled(), ids=lambda bundle: bundle.name)
def test_every_recipe_trains_saves_loads_and_predicts(
    bundle: BundledRecipe,
    tiny_encoder: Path,
    data: Path,
    cache: Path,
    teachers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(cache))
    recipe = shortened(bundle, tiny_encoder, teachers=teachers)
    result = train_recipe(recipe, data=data, out=tmp_path / "run", device="cpu", listener=Silent())
    assert result is not None
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert [stage["stage"] for stage in summary["stages"]] == [s.name for s in recipe.stages]
    assert any(summary["dev"].values())
    model = tercet.load(tmp_path / "run" / "model")
    assert np.isfinite(model.embed(SENTENCES[:2])).all()
    for name, task in recipe.tasks.items():
        if task.answers:
            inputs: Any = (
                SENTENCES[:3] if task.single else list(zip(WORDS, SENTENCES, strict=False))
            )
            assert np.isfinite(np.asarray(model.predictions(name, inputs))).all()
