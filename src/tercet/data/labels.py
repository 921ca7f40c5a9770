"""Conversion of label cells to class numbers or grades."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tercet.files import parse_json
from tercet.specs import TaskSpec

Labels = NDArray[np.int64] | NDArray[np.float32]
Parsed = float | tuple[int, ...]
"""A class number, a grade, or the class numbers of a row that may have several."""
DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d{1,2}|\d{1,3},\d{4,}|0,\d{3})")
"""With three digits after it, a comma may as well group thousands; with more before it, separate
codes."""
NO_LABELS = "[]"
"""The cell of a row that may have several labels and has none."""


class WrongLabelError(ValueError):
    """An invalid label; the message says what was expected."""


class UnmappedLabelError(ValueError):
    """A label that is not in `label_map`: the row is bad."""


@dataclass(frozen=True, slots=True)
class LabelRule:
    """Classes (by number from 0 or by name), grades in a range, or any number; after a word map.

    several: whether a cell holds any number of classes, as JSON or between separators
    """

    names: Sequence[str] | None = None
    span: tuple[float, float] | None = None
    words: Mapping[str, float] | None = None
    several: bool = False
    separator: str | None = None
    _known: dict[str, Parsed] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of_task(cls, task: TaskSpec) -> LabelRule:
        return cls(
            names=task.labels,
            span=task.range,
            words=task.data.label_map,
            several=task.multi_label,
            separator=task.data.label_separator,
        )

    @property
    def expected(self) -> str:
        if self.names is not None and _are_numbers(self.names):
            return f"one of the classes {', '.join(self.names)}"
        if self.names is not None:
            return f"a class from 0 to {len(self.names) - 1} or its name ({', '.join(self.names)})"
        if self.span is not None:
            return f"a number from {self.span[0]:g} to {self.span[1]:g}"
        return "a number"

    def parse(self, cell: str) -> Parsed:
        """The class number, class numbers or grade of a cell."""
        if cell not in self._known:
            self._known[cell] = self._parse_all(cell) if self.several else self._parse(cell)
        return self._known[cell]

    def collect(self, values: Sequence[Parsed]) -> Labels:
        """Parsed labels as an array: int64 classes or float32 grades, [n].

        Where rows may have several classes: int64 [n, classes] of 0 and 1.
        """
        if self.several:
            labels = np.zeros((len(values), len(self.names or ())), np.int64)
            for row, classes in enumerate(values):
                labels[row, list(cast(tuple[int, ...], classes))] = 1
            return labels
        if self.names is not None:
            return np.asarray(values, np.int64)
        return np.asarray(values, np.float32)

    def _parse_all(self, cell: str) -> tuple[int, ...]:
        return tuple(int(self._parse(part)) for part in split_labels(cell, self.separator))

    def _parse(self, cell: str) -> float:
        if self.words is not None:
            return self._checked(self._mapped(cell, self.words))
        if self.names is not None and (index := _index_by_name(cell, self.names)) is not None:
            return index
        number = parse_number(cell)
        if number is None or not math.isfinite(number):
            raise WrongLabelError(self.expected)
        return self._checked(number, numbered=not _are_numbers(self.names))

    def _mapped(self, cell: str, words: Mapping[str, float]) -> float:
        if cell in words:
            return words[cell]
        number = parse_number(cell)
        for word, value in words.items():
            if number is not None and parse_number(word) == number:
                return value
        raise UnmappedLabelError(f"label_map has only {', '.join(words)}")

    def _checked(self, number: float, *, numbered: bool = True) -> float:
        if self.names is not None:
            fits = numbered and number == int(number) and 0 <= number < len(self.names)
        else:
            fits = self.span is None or self.span[0] <= number <= self.span[1]
        if not fits:
            raise WrongLabelError(self.expected)
        return number


def split_labels(cell: str, separator: str | None) -> list[str]:
    """The labels of a cell: a JSON list, or parts between separators; blank parts are dropped."""
    if cell.startswith("["):
        try:
            listed = parse_json(cell)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return [str(part).strip() for part in listed if str(part).strip()]
    parts = [cell] if separator is None else cell.split(separator)
    return [part.strip() for part in parts if part.strip()]


def parse_number(cell: str) -> float | None:
    """The number in a cell (it may be NaN or infinite), or None; 4,5 is 4.5."""
    if "_" in cell:  # Python groups digits with _; data files do not
        return None
    try:
        return float(cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell)
    except ValueError:
        return None


def label_key(label: str) -> str | float:
    """What a label is known by: numbers that are equal are one label."""
    number = parse_number(label)
    return label if number is None or not math.isfinite(number) else number


def in_order(labels: Mapping[str | float, str]) -> list[str]:
    """Labels by their keys, in the order of their numbers: numbers by value, then words
    alphabetically."""
    numbers = sorted(key for key in labels if isinstance(key, float))
    words = sorted((key for key in labels if isinstance(key, str)), key=lambda w: (w.casefold(), w))
    return [*(labels[number] for number in numbers), *(labels[word] for word in words)]


def _are_numbers(names: Sequence[str] | None) -> bool:
    """Whether class names are numbers (1 to 5 stars): these are not also counted from 0."""
    return names is not None and any(parse_number(name) is not None for name in names)


def _index_by_name(cell: str, names: Sequence[str]) -> int | None:
    if cell in names:
        return names.index(cell)
    number = parse_number(cell)
    same = (
        i for i, name in enumerate(names) if number is not None and parse_number(name) == number
    )
    return next(same, None)
