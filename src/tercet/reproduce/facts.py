"""How the results of a table were made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tercet.files import read_json_object, reading
from tercet.recipe import Recipe, find_bundled
from tercet.reproduce.runs import Experiment, Outcome

ALLOWED = ("seed", "encoder.", "checkpoint.", "evaluation.patience")
"""Keys, or their beginnings, that a run may change and still be of the same method."""


def facts_of(outcomes: Sequence[Outcome], out: Path) -> dict[str, str]:
    """Encoders, changes, versions and machines of all finished experiments, each in words.

    They are read from the runs, because a folder may hold those of several calls.
    """
    done = [outcome.experiment for outcome in outcomes if outcome.reason is None]
    folders = [experiment.folder(out) for experiment in done]
    with reading(out):
        return _facts(folders, done)


def _facts(folders: Sequence[Path], done: Sequence[Experiment]) -> dict[str, str]:
    environments = [read_json_object(folder / "summary.json")["made_with"] for folder in folders]
    recipes = [Recipe.load(folder / "recipe.toml") for folder in folders]
    return {
        "encoder": _distinct(recipe.encoder.name for recipe in recipes),
        # Runs of early versions do not record the weights.
        "weights at the start": _distinct(
            each.get("weights", "not recorded") for each in environments
        ),
        "changes": _shared(map(_changes, done, recipes), runs=len(done)),
        "made with": _distinct(
            f"{each['machine']} (tercet {each['tercet']}, torch {each['torch']})"
            for each in environments
        ),
        "intervals": "95 %, over seeds where there are several (Student's t), else over dev rows",
        "selection": "where `kept` is best, the best epoch was chosen on the same dev rows",
        "data": "NLI and Quora differ in size from the reports'; each recipe's header gives both",
    }


def reading_changes(name: str, recipe: Recipe) -> list[str]:
    """`a.b=c` for the keys in which a run's method differs from the package's recipe of a name."""
    changes = _changes(Experiment(name, recipe.seed), recipe)
    return sorted(change for change in changes if not change.startswith(ALLOWED))


def _changes(experiment: Experiment, recipe: Recipe) -> set[str]:
    """`a.b=c` for every key in which the recipe of a run differs from the package's.

    Seed, encoder, folders of teachers and whether rows are recorded are left out.
    """
    ours, theirs = _plain(experiment.name), dict(_flat(recipe))
    teachers = [key.removesuffix(".recipe") for key in ours if key.endswith("teacher.recipe")]
    left_out = {
        "seed",
        "encoder.name",
        "record_rows",
        *(f"{teacher}.folder" for teacher in teachers),
    }
    keys = (ours.keys() | theirs.keys()) - left_out
    changed = {key for key in keys if ours.get(key) != theirs.get(key)}
    return {f"{key}={theirs.get(key, 'unset')}" for key in changed}


@cache
def _plain(name: str) -> dict[str, str]:
    return dict(_flat(find_bundled(name).parse()))


def _flat(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Every value that decides a run and is set, as JSON, with its path."""
    return _leaves(recipe.training(), "")


def _leaves(node: Any, path: str) -> Iterator[tuple[str, str]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        items = value if isinstance(value, list) else [value]
        if any(isinstance(item, dict) for item in items):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", json.dumps(value)


def _shared(changes: Iterable[set[str]], *, runs: int) -> str:
    """All changes; those of some runs only, with their number."""
    count = Counter(change for of_run in changes for change in of_run)
    described = (
        change if times == runs else f"{change} ({times} of {runs} runs)"
        for change, times in sorted(count.items())
    )
    return ", ".join(described) or "none"


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(sorted(set(words))) or "nothing yet"
