"""How figures were made: what a table must say to be honest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tercet.files import read_json_object
from tercet.recipe import Recipe, find_bundled
from tercet.reproduce.runs import Experiment, Outcome


def facts_of(outcomes: Sequence[Outcome], out: Path) -> dict[str, str]:
    """Encoders, changes, versions and machines of all experiments that are done, each in words.

    All of it is read from the runs: a folder may hold those of several calls.
    """
    done = [outcome.experiment for outcome in outcomes if outcome.reason is None]
    made = [_made_with(one.folder(out)) for one in done]
    recipes = [Recipe.load(one.folder(out) / "recipe.toml") for one in done]
    return {
        "encoder": _distinct(recipe.encoder.name for recipe in recipes),
        # Runs of early versions do not say which weights they began with.
        "weights at the start": _distinct(one.get("weights", "not recorded") for one in made),
        "changes": _shared(map(_changes, done, recipes), runs=len(done)),
        "made with": _distinct(
            f"{one['machine']} (tercet {one['tercet']}, torch {one['torch']})" for one in made
        ),
        "intervals": "95 %, over seeds where there are several (Student's t), else over dev rows",
        "data": "NLI and Quora differ in size from the reports'; see each recipe's header",
    }


def _made_with(run: Path) -> dict[str, str]:
    found: dict[str, str] = read_json_object(run / "summary.json")["made_with"]
    return found


def _changes(experiment: Experiment, recipe: Recipe) -> set[str]:
    """`a.b=c` of every key in which a run's recipe is not the package's.

    Seed, encoder and where its teachers lay are told elsewhere, or nobody's concern.
    """
    ours, theirs = _plain(experiment.name), dict(_flat(recipe))
    taught = [key.removesuffix(".recipe") for key in ours if key.endswith("teacher.recipe")]
    told = {"seed", "encoder.name", *(f"{teacher}.folder" for teacher in taught)}
    keys = (ours.keys() | theirs.keys()) - told
    changed = {key for key in keys if ours.get(key) != theirs.get(key)}
    return {f"{key}={theirs.get(key, 'unset')}" for key in changed}


@cache
def _plain(name: str) -> dict[str, str]:
    return dict(_flat(find_bundled(name).parse()))


def _flat(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Every value that is set, as JSON, under its path."""
    return _leaves(recipe.model_dump(mode="json", exclude_none=True), "")


def _leaves(node: Any, path: str) -> Iterator[tuple[str, str]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in inner:
        if isinstance(value, dict) or (isinstance(value, list) and _has_tables(value)):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", json.dumps(value)


def _has_tables(items: list[Any]) -> bool:
    return any(isinstance(item, dict) for item in items)


def _shared(changes: Iterable[set[str]], *, runs: int) -> str:
    """All changes; of one that not every run has, in how many."""
    count = Counter(change for found in changes for change in found)
    told = (
        change if times == runs else f"{change} ({times} of {runs} runs)"
        for change, times in sorted(count.items())
    )
    return ", ".join(told) or "none"


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(sorted(set(words))) or "nothing yet"
