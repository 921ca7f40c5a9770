"""docs/recipes.md: its example trains as it stands, and no kind of part is left out."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

import tercet
from tercet.recipe import Recipe
from tercet.specs import HEADS, OBJECTIVES, SCHEDULES, SURGERIES, Feature
from tercet.specs.registry import Registry
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

PAGE = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text("utf-8")
TICKETS = {
    "billing": "The invoice is wrong.",
    "delivery": "Where is it?",
    "returns": "I send it back.",
}
QUESTIONS = [("Where is it?", "When does it come?", "yes"), ("Where is it?", "Who am I?", "no")]


def examples() -> list[dict[str, Any]]:
    """Whole recipes, which have a name, and parts of recipes."""
    return [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]


def example(name: str) -> dict[str, Any]:
    """The recipe of that name on the page."""
    (tree,) = [tree for tree in examples() if tree.get("name") == name]
    return tree


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_files(folder: Path) -> None:
    tickets = [(f"{text} {number}", team) for team, text in TICKETS.items() for number in range(9)]
    for end in ("", "-dev"):
        write(folder / f"tickets{end}.csv", [("text", "team"), *tickets])
        write(folder / f"questions{end}.csv", [("question", "other", "same"), *QUESTIONS * 6])


def test_the_example_trains_and_answers(tiny_encoder: Path, tmp_path: Path) -> None:
    tree = example("mine")
    tree["encoder"] = {"name": str(tiny_encoder), "max_tokens": 24}
    write_files(tmp_path)
    recipe = Recipe.from_tree(tree, where="docs/recipes.md")
    result = train_recipe(recipe, data=tmp_path, out=tmp_path / "run", listener=Silent())
    assert result is not None
    assert result.dev.keys() == {"team", "same"}
    model = tercet.load(tmp_path / "run")
    (output,) = model.predict("team", ["My parcel never came."])
    assert output.name in TICKETS
    assert len(model.predict("same", [("Where is my parcel?", "When will it come?")])) == 1


def test_further_tasks_fit_a_recipe() -> None:
    whole, parts = example("mine"), [tree for tree in examples() if "name" not in tree]
    for part in parts:
        further = part.get("tasks", {})
        tree = {**whole, **part, "tasks": {**whole["tasks"], **further}}
        assert further.keys() < Recipe.from_tree(tree, where="docs").tasks.keys()
    assert any("tasks" in part for part in parts)


def test_the_added_task_trains_and_answers(tiny_encoder: Path, tmp_path: Path) -> None:
    base, added = example("mine"), example("routing")
    assert added["onto"] == "tercet/small"
    base["encoder"] = {"name": str(tiny_encoder), "max_tokens": 24}
    del base["tasks"]["team"]
    added["onto"] = str(tmp_path / "base")
    write_files(tmp_path)
    for name, tree in {"base": base, "added": added}.items():
        recipe = Recipe.from_tree(tree, where="docs/recipes.md")
        train_recipe(recipe, data=tmp_path, out=tmp_path / name, listener=Silent())
    assert list(tercet.load(tmp_path / "added").tasks) == ["same", "team"]


@pytest.mark.parametrize("registry", [HEADS, OBJECTIVES, SCHEDULES, SURGERIES])
def test_all_parts_are_named(registry: Registry[Any]) -> None:
    assert len(registry.names()) > 5
    assert [kind for kind in registry.names() if f"`{kind}`" not in PAGE] == []


def test_all_features_are_named() -> None:
    assert [name for name in get_args(Feature) if f"`{name}`" not in PAGE] == []


def test_the_page_names_every_encoder_architecture() -> None:
    from tercet.nn.architectures.record import ARCHITECTURES

    assert [name for name in ARCHITECTURES if f"`{name}`" not in PAGE] == []
