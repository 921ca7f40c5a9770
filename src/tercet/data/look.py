"""What a labelled file is about: which columns are texts and labels, and what kind of labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from tercet.data.columns import find_column, is_name
from tercet.data.declared import declared_classes
from tercet.data.delimited import OPEN, Reading
from tercet.data.doubts import (
    missing_of,
    mostly_numbers,
    named_in_texts,
    spellings_of,
    splits_of,
)
from tercet.data.files import find_file
from tercet.data.labels import in_order, label_key, parse_number, split_labels
from tercet.data.likely import LabelKind, likely_kind, likely_label, likely_texts
from tercet.data.profiles import (
    MOST_CLASSES,
    SAMPLE,
    Profile,
    Profiles,
    are_lists,
    likely_separator,
    read_profiles,
    separator_of,
)
from tercet.data.readers import column_names, read_rows
from tercet.errors import ArgumentError, TercetError, shorten
from tercet.specs import Column, is_computable

SHOWN_CLASSES = 8
FEW_ROWS = 3
"""Rows per class on average; with fewer, the labels are doubtful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a file is about.

    texts: one text column, or two of pairs; label: the label column
    names: of the classes or labels; empty for grades
    counts: rows of each class or label
    range: the lowest and highest grade
    separator: between the labels of a cell, if it is not a list
    rows: rows that can be used; left_out: rows without a text or a label
    unreadable: rows that cannot be read; problem: the first of them, and what is wrong with it
    duplicates: rows whose texts are in an earlier row; conflicts: those with another label
    sample: some of the texts
    doubts: guesses that are not certain, and the arguments of `fit` that change them
    """

    path: Path
    texts: tuple[Column, ...]
    label: Column
    kind: LabelKind
    names: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    range: tuple[float, float] | None = None
    separator: str | None = None
    rows: int
    left_out: int = 0
    unreadable: int = 0
    problem: str = ""
    duplicates: int = 0
    conflicts: int = 0
    sample: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def is_pair(self) -> bool:
        return len(self.texts) == 2

    def sentences(self, *, name: str | None = None) -> list[str]:
        """What was understood, for a person.

        name: of the file; default: without its folder
        """
        columns = " and ".join(f"`{column}`" for column in self.texts)
        what = "pairs of texts" if self.is_pair else "texts"
        found = [
            f"{name or self.path.name}: {self.rows:,} {what} in {columns}, {self._labels()} in "
            f"`{self.label}`."
        ]
        notes = []
        if self.left_out:
            rows, are = ("row", "is") if self.left_out == 1 else ("rows", "are")
            notes.append(f"{self.left_out:,} {rows} without a text or a label {are} left out")
        if self.unreadable:
            rows, are = ("row", "is") if self.unreadable == 1 else ("rows", "are")
            notes.append(f"{self.unreadable:,} {rows} {are} left out, the first: {self.problem}")
        if self.duplicates:
            conflicts = f", {self.conflicts:,} of them with another label" if self.conflicts else ""
            repeat = "row repeats" if self.duplicates == 1 else "rows repeat"
            notes.append(f"{self.duplicates:,} {repeat} the texts of an earlier row{conflicts}")
        found += [f"{'; '.join(notes)}."] if notes else []
        return [*found, *(f"Not certain: {doubt}" for doubt in self.doubts)]

    def _labels(self) -> str:
        if self.kind == "grades":
            assert self.range is not None
            return f"grades from {self.range[0]:g} to {self.range[1]:g}"
        ordered = sorted(self.names, key=lambda name: -self.counts[name])
        shares = [
            f"{shorten(name, 30)} {self.counts[name] / max(1, self.rows):.0%}"
            for name in ordered[:SHOWN_CLASSES]
        ]
        more = f" and {len(ordered) - SHOWN_CLASSES} more" if len(ordered) > SHOWN_CLASSES else ""
        sort = "classes" if self.kind == "classes" else "labels, any number per row"
        return f"{len(self.names)} {sort} ({', '.join(shares)}{more})"


def look_at(
    path: str | Path,
    *,
    text: Sequence[Column] = (),
    label: Column | None = None,
    kind: LabelKind | None = None,
) -> Look:
    """What a labelled file is about; what is given is not guessed.

    text: one column, or two for pairs
    """
    path = find_file(path)
    named = any(is_name(column) for column in (*text, *(() if label is None else (label,))))
    reading = Reading(header=True) if named else OPEN
    names = column_names(path, reading)
    chosen = [names[find_column(column, names, path=path)] for column in text]
    target = None if label is None else names[find_column(label, names, path=path)]
    read = read_profiles(path, names, reading)
    profiles = read.columns
    doubts: list[str] = []
    if target is None:
        target = likely_label(path, profiles, chosen, doubts)
    classes = None if kind == "grades" else declared_classes(path, target)
    if classes is not None and kind is None:
        kind = "multi-label" if are_lists(profiles[target]) else "classes"
    if not chosen:
        chosen = likely_texts(path, profiles, target, doubts)
    if "" in (*chosen, target):
        place = names.index("") + 1
        raise TercetError(f"{path}: column {place} has no name; give it one in the first line.")
    doubts += splits_of(profiles)
    doubts += named_in_texts(profiles[target], [profiles[name] for name in chosen])
    look = _understood(path, read, [*chosen, target], reading, kind, doubts)
    look = look if classes is None else _with_names(look, classes)
    return replace(look, unreadable=read.unreadable, problem=read.problem)


def _with_names(look: Look, classes: Sequence[str]) -> Look:
    """The names of classes instead of their numbers, unless there are other values too."""
    numbers = {str(number): name for number, name in enumerate(classes)}
    if not numbers.keys() >= look.counts.keys():
        return look
    counts = {name: look.counts.get(number, 0) for number, name in numbers.items()}
    return replace(look, names=list(classes), counts=counts)


def _understood(
    path: Path,
    read: Profiles,
    columns: Sequence[str],
    reading: Reading,
    kind: LabelKind | None,
    doubts: list[str],
) -> Look:
    """columns: the names of the text columns, then that of the label column"""
    *texts, name = columns
    label = read.columns[name]
    lists = are_lists(label)
    separator = None if lists else separator_of(label)
    is_guessed = kind is None
    if kind is None:
        kind = likely_kind(label, several=lists or separator is not None, doubts=doubts)
    several = kind == "multi-label"
    if several and separator is None and not lists:
        separator = likely_separator(label)
    found = _Counted(several=several, separator=separator)
    for cells in _cells(path, read, columns, reading):
        found.add(cells)
    if not found.rows:
        raise TercetError(f"{path}: no row has both a text and a label.")
    counts = found.counts
    if kind == "classes" and found.rows < FEW_ROWS * len(counts):
        doubts.append(
            f"the {len(counts):,} classes of `{name}` have {found.rows:,} rows, too few to "
            'learn them: say `label="COLUMN"` if another column is the label.'
        )
    names = [] if kind == "grades" else _names(path, label, found.spelling)
    doubts += spellings_of(name, names)
    numbers = [*mostly_numbers(label)] if is_guessed and kind == "classes" else []
    doubts += numbers or missing_of(name, {each: counts[each] for each in names})
    return Look(
        path=path,
        texts=tuple(map(_column, texts)),
        label=_column(name),
        kind=kind,
        names=names,
        counts={} if kind == "grades" else dict(counts),
        range=_range(path, label, counts) if kind == "grades" else None,
        separator=separator if several else None,
        rows=found.rows,
        left_out=found.left_out,
        duplicates=found.duplicates,
        conflicts=found.conflicts,
        sample=tuple(found.sample),
        doubts=tuple(doubts),
    )


def _cells(
    path: Path, read: Profiles, columns: Sequence[str], reading: Reading
) -> Iterator[tuple[str | None, ...]]:
    """The cells of some columns in every row that can be read; a long file is read again."""
    known = [read.columns[name].values for name in columns]
    if len(known[0]) == read.rows:
        yield from zip(*known, strict=True)
        return
    for row in read_rows(path, columns, reading, lists=columns, any_value=True):
        if row.problem is None:
            yield row.values


@dataclass(slots=True)
class _Counted:
    """What the rows of a file hold.

    several: whether rows may have several labels, or none
    counts: rows of each label, by its first spelling; spelling: that, by what it is known by
    duplicates, conflicts: rows that repeat the texts of an earlier row, and those of them that have
        another label than the first
    """

    several: bool
    separator: str | None
    rows: int = 0
    left_out: int = 0
    duplicates: int = 0
    conflicts: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    spelling: dict[str | float, str] = field(default_factory=dict)
    sample: list[str] = field(default_factory=list)
    _first: dict[int, int] = field(default_factory=dict)
    """By hashes, since a file may be long: the label of the first row with some texts."""

    def add(self, cells: Sequence[str | None]) -> None:
        """cells: of a row: its texts, then its label"""
        texts, label = [text for text in cells[:-1] if text], cells[-1]
        if len(texts) < len(cells) - 1 or (label is None and not self.several):
            self.left_out += 1
            return
        self.rows += 1
        if self.rows <= SAMPLE:
            self.sample += texts
        cell = label or ""
        parts = split_labels(cell, self.separator) if self.several else [cell]
        self.counts.update(self.spelling.setdefault(label_key(part), part) for part in parts)
        key = hash(tuple(" ".join(text.casefold().split()) for text in texts))
        self.duplicates += key in self._first
        self.conflicts += self._first.setdefault(key, hash(cell)) != hash(cell)


def _names(path: Path, label: Profile, labels: dict[str | float, str]) -> list[str]:
    """The names of classes or labels, in the order of their numbers."""
    if len(labels) < 2:
        found = f"only one label, {next(iter(labels.values()), '')!r}"
        raise TercetError(f"{path}: column `{label.name}` has {found}; a task needs two or more.")
    if len(labels) > MOST_CLASSES:
        raise ArgumentError(
            f"{path}: column `{label.name}` has {len(labels):,} different labels; it looks like "
            "text or grades: name another column with `label`.",
            "label",
        )
    return in_order(labels)


def _range(path: Path, label: Profile, counts: Counter[str]) -> tuple[float, float]:
    numbers = [parse_number(value) for value in counts]
    wrong = [v for v, number in zip(counts, numbers, strict=True) if number is None]
    if wrong:
        raise TercetError(
            f"{path}: column `{label.name}` holds {shorten(wrong[0])!r}, which is not a grade: a "
            "number such as 4.5 is expected."
        )
    # Reading the rows names the line of one that is not finite.
    grades = [number for number in numbers if number is not None and isfinite(number)]
    if not grades or min(grades) == max(grades):
        raise TercetError(f"{path}: column `{label.name}` has no two different grades.")
    low, high = min(grades), max(grades)
    if not is_computable(low, high):
        raise TercetError(
            f"{path}: column `{label.name}` has grades from {low:g} to {high:g}, which single "
            "precision does not tell apart; write them on another scale."
        )
    return low, high


def _column(name: str) -> Column:
    return name if is_name(name) else int(name)
