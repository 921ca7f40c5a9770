"""From scratch: teachers are trained before those whom they teach, who are told where they lie."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tercet.recipe import Recipe
from tercet.reproduce import runs
from tercet.reproduce.runs import FIRST_SEED, Experiment, Outcome, in_turns, run_all


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Experiment, Sequence[str]]]:
    """What was run, with which changes; nothing is really trained."""
    found: list[tuple[Experiment, Sequence[str]]] = []

    def run(experiment: Experiment, *, changes: Sequence[str], **others: Any) -> Outcome:
        found.append((experiment, changes))
        return Outcome(experiment, None)

    monkeypatch.setattr(runs, "_run", run)
    return found


def test_the_teacher_comes_first_and_its_students_learn_from_it(
    done: list[tuple[Experiment, Sequence[str]]], tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    outcomes = run_all(
        ["tercet/small"],
        data=Path(),
        out=tmp_path,
        seeds=2,
        jobs=2,
        changes=["seed=5"],
        from_scratch=True,
        tell=lambda outcome, outcomes, total: told.append((len(outcomes), total)),
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    teacher = Experiment("tercet/base", FIRST_SEED)
    assert [outcome.experiment for outcome in outcomes] == [
        teacher,
        Experiment("tercet/small", FIRST_SEED),
        Experiment("tercet/small", FIRST_SEED + 1),
    ]
    assert done[0] == (teacher, ["seed=5"])
    recipe = Recipe.load("tercet/small", done[1][1])
    for task in recipe.tasks.values():
        if task.teacher is not None and task.teacher.recipe is not None:
            assert task.teacher.folder == [str(teacher.folder(tmp_path).resolve())]
    assert recipe.tasks["vectors"].teacher is not None
    assert recipe.tasks["vectors"].teacher.folder == ["all-minilm-l6-v2"]


def test_without_it_recipes_run_as_they_are(
    done: list[tuple[Experiment, Sequence[str]]], tmp_path: Path
) -> None:
    run_all(
        ["tercet/small"],
        data=Path(),
        out=tmp_path,
        seeds=1,
        jobs=1,
        changes=[],
        tell=lambda *told: None,
    )
    assert done == [(Experiment("tercet/small", FIRST_SEED), [])]


def test_an_ensemble_is_as_many_seeds_and_each_trains_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = runs.find_bundled("tercet/small").text
    tree = tomllib.loads(text.replace('"runs/tercet/base"', '["a", "b", "c"]'))

    class Bundle:
        def __init__(self, name: str) -> None:
            self.name = name

        def parse(self) -> Recipe:
            small = self.name == "tercet/small"
            return Recipe.from_tree(tree, where="small") if small else Recipe.load(self.name)

    monkeypatch.setattr(runs, "find_bundled", Bundle)
    base, small = Experiment("tercet/base", FIRST_SEED), Experiment("tercet/small", FIRST_SEED)
    turns = in_turns([small, base])
    seeds = [Experiment("tercet/base", FIRST_SEED + i) for i in range(3)]
    assert turns == [seeds, [small]]
