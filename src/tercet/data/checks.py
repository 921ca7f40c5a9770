"""Checks of data files before training: bad rows, duplicates, labels, overlaps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite
from pathlib import Path

import numpy as np

from tercet.data.examples import BadRow, find_fault, wanted
from tercet.data.files import find_file
from tercet.data.guess import Columns, guess_columns
from tercet.data.labels import parse_number, split_labels
from tercet.data.readers import read_rows
from tercet.errors import TercetError
from tercet.specs import Column

EXAMPLES = 10  # groups of lines listed per finding
NUMERIC = 0.9  # a label column is numeric from this share of numbers on
CLASSES = 20  # with more distinct numbers, labels are grades


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How many rows or texts are affected, and the lines of the first few groups."""

    count: int
    lines: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """Counts per class, or the range and mean of grades."""

    lowest: float | None
    highest: float | None
    mean: float | None
    different: int
    counts: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class Lengths:
    """Words per text."""

    median: float
    p95: float
    longest: int
    longest_line: int


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The findings of one file.

    duplicate_rows: same texts and label
    duplicate_texts: same texts, ignoring case, whitespace and the order of a pair
    conflicts: duplicate texts with different labels
    """

    file: str
    texts: list[str]
    label: str | None
    rows: int
    bad: list[BadRow]
    duplicate_rows: Occurrences
    duplicate_texts: Occurrences
    conflicts: Occurrences
    labels: LabelSummary | None
    lengths: Lengths


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two files share: pairs or triples in any order, and single sentences.

    Lines are [line in first, line in second]; `pairs` is None unless both files have pairs.
    """

    first: str
    second: str
    pairs: Occurrences | None
    sentences: Occurrences


@dataclass(frozen=True, slots=True)
class CheckReport:
    files: list[FileCheck]
    overlaps: list[Overlap]


@dataclass(slots=True)
class _Content:
    """The valid rows of a file: texts, case-folded texts, label cells, line numbers."""

    path: Path
    columns: Columns
    texts: list[tuple[str, ...]] = field(default_factory=list)
    folded: list[tuple[str, ...]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    @property
    def width(self) -> int:
        return len(self.columns.texts)


def check_files(
    paths: Sequence[Path], *, texts: Sequence[Column] | None = None, label: Column | None = None
) -> CheckReport:
    """Check each file, and compare every two files."""
    contents = [_read(find_file(path), texts=texts, label=label) for path in paths]
    overlaps = [_compare(first, second) for first, second in combinations(contents, 2)]
    return CheckReport([_check(content) for content in contents], overlaps)


def _read(path: Path, *, texts: Sequence[Column] | None, label: Column | None) -> _Content:
    content = _Content(path, guess_columns(path, texts=texts, label=label, argument="text"))
    chosen = content.columns
    columns = wanted(chosen.texts, chosen.label)
    lists = [] if chosen.label is None else [chosen.label]
    for row in read_rows(path, columns, chosen.reading, lists=lists):
        fault = find_fault(row, columns, path=path, label=chosen.label is not None)
        if fault is not None:
            content.bad.append(fault)
            continue
        values = tuple(value or "" for value in row.values)
        content.lines.append(row.line)
        content.texts.append(values[: content.width])
        content.folded.append(tuple(sorted(map(_fold, values[: content.width]))))
        content.labels += values[content.width :]
    if not content.lines:
        raise TercetError(f"{path}: all {len(content.bad)} rows lack a text or a label.")
    return content


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _check(content: _Content) -> FileCheck:
    labels = [_canonical(label) for label in content.labels]
    bad = sorted([*content.bad, *_odd_labels(content, labels)], key=lambda row: row.line)
    rows: Iterable[Hashable] = zip(content.texts, labels, strict=True) if labels else content.texts
    return FileCheck(
        file=str(content.path),
        texts=[str(column) for column in content.columns.texts],
        label=None if content.columns.label is None else str(content.columns.label),
        rows=len(content.lines) + len(content.bad),
        bad=bad,
        duplicate_rows=_duplicates(rows, content.lines),
        duplicate_texts=_duplicates(content.folded, content.lines),
        conflicts=_conflicts(content, labels),
        labels=_summarise(labels) if labels else None,
        lengths=_lengths(content),
    )


def _canonical(label: str) -> str:
    """Numbers in one spelling: `1.0` and `1` are the same label."""
    number = parse_number(label)
    return label if number is None or not isfinite(number) else f"{number:.12g}"


def _is_finite(label: str) -> bool:
    number = parse_number(label)
    return number is not None and isfinite(number)


def _is_numeric(labels: Sequence[str]) -> bool:
    return sum(map(_is_finite, labels)) >= NUMERIC * len(labels)


def _odd_labels(content: _Content, labels: Sequence[str]) -> list[BadRow]:
    """Labels that are not finite numbers, in a numeric column."""
    if not _is_numeric(labels):
        return []
    column = str(content.columns.label)
    return [
        BadRow(str(content.path), line, column, label, f"label {label!r} is not a finite number")
        for line, label in zip(content.lines, labels, strict=False)
        if not _is_finite(label)
    ]


def _group(keys: Iterable[Hashable]) -> list[list[int]]:
    """Indices of rows with the same key, for keys that occur more than once."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        groups[key].append(index)
    return [group for group in groups.values() if len(group) > 1]


def _duplicates(keys: Iterable[Hashable], lines: Sequence[int]) -> Occurrences:
    """Rows that repeat an earlier one."""
    groups = _group(keys)
    shown = [[lines[index] for index in group] for group in groups[:EXAMPLES]]
    return Occurrences(sum(len(group) - 1 for group in groups), shown)


def _conflicts(content: _Content, labels: Sequence[str]) -> Occurrences:
    """Texts with different labels."""
    if not labels:
        return Occurrences(0)
    groups = [
        group for group in _group(content.folded) if len({labels[index] for index in group}) > 1
    ]
    shown = [[content.lines[index] for index in group] for group in groups[:EXAMPLES]]
    return Occurrences(len(groups), shown)


def _summarise(labels: Sequence[str]) -> LabelSummary:
    # A list counts once for each of its labels.
    labels = [part for label in labels for part in split_labels(label, None)]
    counts = Counter(labels)
    if not labels or not _is_numeric(labels):
        return LabelSummary(None, None, None, len(counts), dict(counts.most_common(CLASSES)))
    numbers = [float(label) for label in labels if _is_finite(label)]
    ordered = sorted((label for label in counts if _is_finite(label)), key=float)
    classes = {label: counts[label] for label in ordered} if len(ordered) <= CLASSES else None
    return LabelSummary(
        min(numbers), max(numbers), sum(numbers) / len(numbers), len(ordered), classes
    )


def _lengths(content: _Content) -> Lengths:
    words = np.array([[len(text.split()) for text in texts] for texts in content.texts])
    longest = int(words.max(axis=1).argmax())
    return Lengths(
        median=float(np.median(words)),
        p95=float(np.percentile(words, 95)),
        longest=int(words.max()),
        longest_line=content.lines[longest],
    )


def _compare(first: _Content, second: _Content) -> Overlap:
    pairs = None
    if first.width == second.width > 1:
        pairs = _common(
            zip(first.folded, first.lines, strict=True),
            zip(second.folded, second.lines, strict=True),
        )
    return Overlap(
        first=str(first.path),
        second=str(second.path),
        pairs=pairs,
        sentences=_common(_sentences(first), _sentences(second)),
    )


def _sentences(content: _Content) -> Iterable[tuple[str, int]]:
    for texts, line in zip(content.folded, content.lines, strict=True):
        for text in texts:
            yield text, line


def _common(
    first: Iterable[tuple[Hashable, int]], second: Iterable[tuple[Hashable, int]]
) -> Occurrences:
    """Distinct keys that both have, each with its first line in either."""
    places: dict[Hashable, int] = {}
    for key, line in first:
        places.setdefault(key, line)
    shared: dict[Hashable, list[int]] = {}
    for key, line in second:
        if key in places:
            shared.setdefault(key, [places[key], line])
    return Occurrences(len(shared), list(shared.values())[:EXAMPLES])
