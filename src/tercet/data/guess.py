"""Detecting the text columns and the label column of a file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tercet.data.columns import LABELS, TEXTS, is_name
from tercet.data.delimited import OPEN, Reading
from tercet.data.files import bare_name
from tercet.data.layouts import LAYOUTS, Layout
from tercet.data.readers import column_names
from tercet.errors import ArgumentError
from tercet.specs import Column


@dataclass(frozen=True, slots=True)
class Columns:
    """The text columns and the label column of a file, and how it is written."""

    texts: tuple[Column, ...]
    label: Column | None
    reading: Reading = OPEN


def guess_columns(
    path: Path,
    *,
    texts: Sequence[Column] | None = None,
    label: Column | None = None,
    argument: str = "column",
) -> Columns:
    """The given columns, completed from a known layout, the header or the only column.

    argument: what the caller takes text columns with, for the message if they cannot be guessed
    """
    layout = None if texts or label is not None else _layout_of(path)
    if layout is not None:
        return Columns(layout.texts, layout.label, layout.reading)
    columns = [*(texts or ()), *(() if label is None else (label,))]
    reading = Reading(header=True) if any(map(is_name, columns)) else OPEN
    names = column_names(path, reading)
    if not texts:
        texts = _text_columns(names, path, argument)
    if label is None:
        label = next((name for name in names if name.lower() in LABELS), None)
    return Columns(tuple(texts), label, reading)


def known_texts(names: Sequence[str]) -> tuple[Column, ...] | None:
    """The text columns: those with usual names, or the only column."""
    lower = [name.lower() for name in names]
    for known in TEXTS:
        if set(known) <= set(lower):
            return tuple(names[lower.index(name)] for name in known)
    return (1,) if len(names) == 1 else None


def _text_columns(names: Sequence[str], path: Path, argument: str) -> tuple[Column, ...]:
    found = known_texts(names)
    if found is not None:
        return found
    shown = ", ".join(_shown(names, path)[:20])
    raise ArgumentError(
        f"{path}: cannot tell which columns are texts; select them with `{argument}`, by name or "
        f"number: {shown}.",
        argument,
    )


def _shown(names: Sequence[str], path: Path) -> list[str]:
    """Columns for a message; those without names with their first value."""
    if not all(name.isdecimal() for name in names):
        return [f"`{name}`" for name in names]
    first = column_names(path, Reading(header=True))
    return [
        f"{name} ({textwrap.shorten(cell, 30)!r})" for name, cell in zip(names, first, strict=True)
    ]


def _layout_of(path: Path) -> Layout | None:
    """The layout of a headerless file, by the names of file and folder."""
    for layout in LAYOUTS.values():
        dev = () if isinstance(layout.dev, float) else layout.dev
        named = bare_name(path) in (*layout.train, *dev)
        inside = path.resolve().parent.as_posix().endswith(f"/{layout.folder}")
        if named and inside and layout.reading.header is False:
            return layout
    return None
