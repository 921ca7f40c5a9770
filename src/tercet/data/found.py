"""Labels and ranges that a recipe does not list, found in its training files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

from tercet.data.examples import check_columns
from tercet.data.files import unit_of
from tercet.data.labels import (
    LabelRule,
    UnmappedLabelError,
    WrongLabelError,
    in_order,
    label_key,
    split_labels,
)
from tercet.data.layouts import find_split, resolve
from tercet.data.where import rows_where
from tercet.errors import TercetError, shorten
from tercet.recipe import Recipe
from tercet.specs import TaskSpec

MOST_LABELS = 1000


class _Label(NamedTuple):
    """A label as it is written, and where."""

    text: str
    place: str


def with_found_labels(recipe: Recipe, data_dir: Path) -> Recipe:
    """The recipe with the `labels` and `range` of tasks that list neither, checked as a whole."""
    lacking = {name: task for name, task in recipe.tasks.items() if task.lacks is not None}
    if not lacking:
        return recipe
    tree = recipe.model_dump(mode="json", exclude_none=True)
    for name, task in lacking.items():
        source = recipe.tasks[task.like] if task.like is not None else task
        find = found_labels if task.lacks == "labels" else found_range
        tree["tasks"][name][str(task.lacks)] = find(source, data_dir)
    return Recipe.from_tree(tree, where=f"recipe {recipe.name}, with labels found in the data")


def found_labels(task: TaskSpec, data_dir: Path) -> list[str]:
    """The different labels of the training rows: numbers by value, then words alphabetically.

    Numbers that are equal are one label, in the first spelling.
    """
    if task.data.label_map is not None:
        return _mapped_labels(task.data.label_map)
    known: dict[str | float, str] = {}
    seen: set[str] = set()
    for label in _labels(task, data_dir):
        if label.text in seen:
            continue
        seen.add(label.text)
        known.setdefault(label_key(label.text), label.text)
        if len(known) > MOST_LABELS:
            raise TercetError(
                f"{label.place}: column `{_column(task)}` has more than {MOST_LABELS:,} different "
                "labels; it looks like text or grades: name another column with `data.label`, or "
                "use an objective for grades."
            )
    if len(known) < 2:
        found = "".join(f"only one label, {text!r}" for text in known.values()) or "no labels"
        raise TercetError(
            f"{_files(task, data_dir)}: column `{_column(task)}` has {found}; a task needs two "
            "or more."
        )
    return in_order(known)


def found_range(task: TaskSpec, data_dir: Path) -> tuple[float, float]:
    """The lowest and the highest label of the training rows."""
    rule, low, high = LabelRule(words=task.data.label_map), math.inf, -math.inf
    for label in _labels(task, data_dir):
        try:
            grade = float(cast(float, rule.parse(label.text)))
        except UnmappedLabelError:
            continue  # a bad row, which reading the examples reports
        except WrongLabelError as error:
            raise TercetError(
                f"{label.place}: column `{_column(task)}` is {shorten(label.text)!r}, expected "
                f"{error}."
            ) from error
        low, high = min(low, grade), max(high, grade)
    if not low < high:
        raise TercetError(
            f"{_files(task, data_dir)}: column `{_column(task)}` has no two different grades."
        )
    return low, high


def _labels(task: TaskSpec, data_dir: Path) -> Iterator[_Label]:
    """The labels of all training rows that have any."""
    data = resolve(task.data)
    check_columns(task, data, "train")
    assert data.label is not None  # since its columns were checked
    lists = [data.label] if task.multi_label else []
    for path in find_split(data, "train", data_dir):
        for row in islice(rows_where(path, [data.label], data, lists=lists), data.limit):
            cell = row.values[0]
            if row.problem is not None or cell is None:
                continue
            place = f"{path} {unit_of(path)} {row.line}"
            parts = split_labels(cell, data.label_separator) if task.multi_label else [cell]
            yield from (_Label(part, place) for part in parts)


def _mapped_labels(words: dict[str, float]) -> list[str]:
    """The words of a map by the class numbers that they stand for."""
    names: dict[float, str] = {}
    for word, value in words.items():
        names.setdefault(value, word)
    if sorted(names) != list(range(len(names))) or len(names) < 2:
        raise TercetError("`label_map` needs the class numbers 0, 1, ...; list `labels` instead.")
    return [names[number] for number in sorted(names)]


def _files(task: TaskSpec, data_dir: Path) -> str:
    return ", ".join(map(str, find_split(task.data, "train", data_dir)))


def _column(task: TaskSpec) -> str:
    return str(resolve(task.data).label)
