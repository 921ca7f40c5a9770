"""The columns of a file: their values, and what these look like."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tercet.data.columns import repeated_name
from tercet.data.delimited import Reading
from tercet.data.files import unit_of
from tercet.data.labels import parse_number, split_labels
from tercet.data.readers import read_rows
from tercet.errors import TercetError
from tercet.files import parse_json

LOOKED_AT = 100_000
"""Rows whose values are kept; more would not change what a file is about."""
SAMPLE = 2000
MOST_CLASSES = 1000
SEPARATORS = (";", "|", ",")
_FACT = re.compile(r"(?=.*\d)[\d\s:./+-]{6,}([TZ][\d:.+Z-]*|[AP]M)?|[^\s@]+@\S+|\w+://\S+", re.I)
"""Dates, times, telephone numbers, mail addresses and links: neither texts nor labels."""
_OBJECT = re.compile(r"\[?\s*\{\s*[\"}]")
_CLASS_ID = re.compile(r"(label|class|category|intent|topic|team|tag|type|department)[_ ]id")
"""Lower-case names of columns whose numbers are classes."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A column: its values (None where one is missing) and what they look like.

    facts: whether all are dates, addresses and the like
    objects: whether all are objects or lists of them, which other columns may be made of
    """

    name: str
    values: list[str | None]
    filled: int
    distinct: int
    numeric: bool
    words: float
    characters: float
    facts: bool
    objects: bool

    @classmethod
    def of(cls, name: str, values: list[str | None]) -> Profile:
        filled = [value for value in values if value is not None]
        count = max(1, len(filled))
        numeric = bool(filled) and all(is_number(value) for value in filled)
        return cls(
            name=name,
            values=values,
            filled=len(filled),
            distinct=len(set(filled)),
            numeric=numeric,
            words=sum(len(value.split()) for value in filled) / count,
            characters=sum(map(len, filled)) / count,
            facts=not numeric and all(_FACT.fullmatch(value) for value in filled[:SAMPLE]),
            objects=bool(filled) and all(map(_OBJECT.match, filled[:SAMPLE])),
        )

    @property
    def is_id(self) -> bool:
        lower = self.name.lower()
        if _CLASS_ID.fullmatch(lower) is None and (
            lower in ("", "id", "idx", "index") or lower.endswith(("_id", " id"))
        ):
            return True
        unique = self.filled > 1 and self.distinct == self.filled and self.words <= 1.0
        return unique and not self.has_fractions

    @property
    def has_fractions(self) -> bool:
        """Whether its values are numbers, not all of them whole."""
        numbers = map(parse_number, (value for value in self.values if value is not None))
        return self.numeric and any(n is not None and not n.is_integer() for n in numbers)

    @property
    def is_text(self) -> bool:
        varied = self.distinct > 0.2 * self.filled
        long = self.characters >= 8.0 and self.words >= 1.5
        other = self.numeric or self.facts or self.objects
        return not other and varied and long and not self.has_lists

    @property
    def has_lists(self) -> bool:
        """Whether its cells hold several labels, as far as the first ones tell."""
        some = replace(self, values=self.values[:SAMPLE])
        return are_lists(some) or separator_of(some) is not None

    @property
    def is_label(self) -> bool:
        other = self.is_id or self.is_text or self.facts or self.objects
        return self.distinct >= 2 and not other


@dataclass(frozen=True, slots=True)
class Profiles:
    """The columns of a file by name, and its rows that cannot be read.

    rows: that can be read; of more than LOOKED_AT, the columns hold some, evenly spread: a file may
        be sorted by its labels
    unreadable: how many; problem: the first of them, and what is wrong with it
    """

    columns: dict[str, Profile]
    rows: int
    unreadable: int = 0
    problem: str = ""


def read_profiles(path: Path, names: Sequence[str], reading: Reading) -> Profiles:
    if (twice := repeated_name(names)) is not None:
        raise TercetError(f"{path}: two columns are called `{twice}`; rename one of them.")
    columns: list[list[str | None]] = [[] for _ in names]
    rows, every, unreadable, problem = 0, 1, 0, ""
    for row in read_rows(path, list(names), reading, lists=list(names), any_value=True):
        if row.problem is not None:
            unreadable += 1
            problem = problem or f"{unit_of(path)} {row.line} {row.problem}"
            continue
        rows += 1
        if (rows - 1) % every:
            continue
        for values, value in zip(columns, row.values, strict=True):
            values.append(value)
        if columns and len(columns[0]) > LOOKED_AT:
            columns, every = [values[::2] for values in columns], 2 * every
    if not columns or not rows:
        raise TercetError(f"{path}: contains no rows{f': {problem}' if problem else ''}.")
    profiles = [Profile.of(name, values) for name, values in zip(names, columns, strict=True)]
    return Profiles({each.name: each for each in profiles}, rows, unreadable, problem)


def are_lists(label: Profile) -> bool:
    cells = [value for value in label.values if value is not None]
    return bool(cells) and all(value.startswith("[") and _is_json_list(value) for value in cells)


def _is_json_list(cell: str) -> bool:
    try:
        return isinstance(parse_json(cell), list)
    except ValueError:
        return False


def separator_of(label: Profile) -> str | None:
    """What separates the labels of a cell, if splitting there leaves few labels that recur."""
    cells = [value for value in label.values if value is not None]
    if label.numeric or not cells:
        return None
    for separator in SEPARATORS:
        split = [cell for cell in cells if separator in cell]
        if len(split) < 0.05 * len(cells):
            continue
        parts = Counter(part for cell in cells for part in split_labels(cell, separator))
        recur = sum(count >= 2 for count in parts.values()) >= 0.8 * len(parts)
        if recur and 2 <= len(parts) <= MOST_CLASSES and len(parts) < label.distinct:
            return separator
    return None


def likely_separator(label: Profile) -> str:
    cells = [value for value in label.values if value is not None]
    return max(SEPARATORS, key=lambda separator: sum(separator in cell for cell in cells))


def is_number(value: str) -> bool:
    number = parse_number(value)
    return number is not None and math.isfinite(number)
