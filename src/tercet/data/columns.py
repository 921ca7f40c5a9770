"""Columns by name or by number from 1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tercet.errors import TercetError, nearest, shorten
from tercet.specs import Column

TEXTS: tuple[tuple[str, ...], ...] = (
    ("anchor", "positive", "negative"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("text1", "text2"),
    ("sentence",),
    ("text",),
)
"""Usual names of text columns, the most specific first."""
LABELS = ("sentiment", "is_duplicate", "similarity", "label", "gold_label", "score")
"""Usual names of label columns."""
NAMES = frozenset({"id", "idx", "index", *LABELS, *(name for names in TEXTS for name in names)})


def is_name(column: Column) -> bool:
    """Whether a column is given by name rather than by number."""
    return isinstance(column, str) and not re.fullmatch("[0-9]{1,9}", column)


def repeated_name(names: Sequence[str]) -> str | None:
    """The first name that several columns have."""
    counts = Counter(names)
    return next((name for name in names if counts[name] > 1), None)


def find_column(column: Column, names: Sequence[str], *, path: Path) -> int:
    """The index from 0 of a column given by name or by number from 1."""
    return find_columns([column], names, path=path)[0]


def find_columns(columns: Sequence[Column], names: Sequence[str], *, path: Path) -> list[int]:
    """The indexes from 0 of columns; of two with one name the first counts."""
    places = {name: place for place, name in reversed([*enumerate(names)])}
    return [_find(column, places, names, path) for column in columns]


def _find(column: Column, places: Mapping[str, int], names: Sequence[str], path: Path) -> int:
    if isinstance(column, str) and column in places:
        return places[column]
    if is_name(column):
        raise TercetError(
            f"{path}: no column `{column}`; it has {_listed(names)}{nearest(str(column), names)}."
        )
    if not 1 <= int(column) <= len(names):
        raise TercetError(
            f"{path}: no column {column}; it has {len(names)} columns, numbered from 1: "
            f"{_listed(names)}."
        )
    return int(column) - 1


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{shorten(name)}`" for name in names[:20]]
    return ", ".join(shown) + (" and more" if len(names) > 20 else "")
