"""Rows of evaluation files that training files contain, or imply.

Training files are read in a stream. What is kept in memory is the evaluation rows, and 16 bytes for
each known duplicate.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.data.components import Components
from tercet.data.examples import wanted
from tercet.data.files import find_file
from tercet.data.folding import fold
from tercet.data.guess import guess_columns
from tercet.data.labels import parse_number
from tercet.data.readers import read_rows
from tercet.errors import TercetError
from tercet.specs import Column

Texts = tuple[str, ...]
EXAMPLES = 10  # lines listed per finding
_DUPLICATE, _DIFFERENT = 1.0, 0.0
_NO_LABEL = "missing"


@dataclass(frozen=True, slots=True)
class SeenRows:
    """Rows of an evaluation file that are found in one way: their number and the first lines."""

    count: int
    lines: list[int]

    @classmethod
    def of(cls, found: NDArray[np.bool_], lines: NDArray[np.int64]) -> SeenRows:
        return cls(int(found.sum()), lines[found][:EXAMPLES].tolist())


@dataclass(frozen=True, slots=True)
class FileOverlap:
    """What training files tell of the rows of an evaluation file.

    exact: rows whose texts are in a training row, as they are written; pairs in either order
    folded: the same by letters and digits alone
    texts: pairs of which each text is in some training row, folded
    implied: pairs that known duplicates connect, by the label of the pair; None if there are no
        pairs here or no duplicates there
    rows, labels: usable rows, and how many there are of each label where there are few
    """

    file: str
    rows: int
    bad: int
    exact: SeenRows
    folded: SeenRows
    texts: SeenRows | None
    implied: dict[str, SeenRows] | None
    labels: dict[str, int]


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """train_rows: usable rows of the training files; duplicates: pairs among them labelled 1"""

    train: list[str]
    train_rows: int
    duplicates: int
    files: list[FileOverlap]


class _EvaluationFile:
    """The rows of an evaluation file, and which of them have been found."""

    def __init__(self, path: Path, *, texts: Sequence[Column] | None, label: Column | None) -> None:
        self.path = path
        self.rows: list[Texts] = []
        self.folded: list[Texts] = []
        labels: list[str | None] = []
        lines: list[int] = []
        self.bad = 0
        for line, row, cell in _read(path, texts=texts, label=label):
            if row is None:
                self.bad += 1
                continue
            self.rows.append(row)
            self.folded.append(tuple(map(fold, row)))
            labels.append(cell)
            lines.append(line)
        if not self.rows:
            raise TercetError(f"{path}: all {self.bad:,} rows lack a text.")
        self.width = len(self.rows[0])
        self.lines = np.array(lines, np.int64)
        self.labels = np.array([label or _NO_LABEL for label in labels])


class _Lookup:
    """Texts and rows of all evaluation files, and those that have been seen in training rows."""

    def __init__(self, files: Iterable[_EvaluationFile]) -> None:
        self._exact: set[Texts] = set()
        self._folded: set[Texts] = set()
        self._texts: set[str] = set()
        for file in files:
            self._exact.update(map(_unordered, file.rows))
            self._folded.update(map(_unordered, file.folded))
            self._texts.update(text for row in file.folded for text in row)
        self._widths = {len(row) for row in self._exact}
        self.exact: set[Texts] = set()
        self.folded: set[Texts] = set()
        self.texts: set[str] = set()

    def see(self, row: Texts) -> Texts:
        """Note a training row; the same row, folded."""
        folded = tuple(map(fold, row))
        self.texts.update(text for text in folded if text in self._texts)
        for exact_key, folded_key in zip(self._keys(row), self._keys(folded), strict=True):
            if folded_key in self._folded:
                self.folded.add(folded_key)
                if exact_key in self._exact:
                    self.exact.add(exact_key)
        return folded

    def _keys(self, row: Texts) -> list[Texts]:
        """The row in any order, and each of its texts for evaluation rows of one text."""
        keys = [_unordered(row)] if len(row) in self._widths else []
        if len(row) > 1 and 1 in self._widths:
            keys += [(text,) for text in row]
        return keys


def _unordered(row: Texts) -> Texts:
    return row if len(row) == 1 else tuple(sorted(row))


def find_overlap(
    train: Sequence[Path],
    evaluation: Sequence[Path],
    *,
    texts: Sequence[Column] | None = None,
    label: Column | None = None,
) -> OverlapReport:
    """Which rows of evaluation files are in training files, exactly, folded or by implication.

    texts, label: columns of all files; default: detected in each
    Known duplicates are the pairs labelled 1 in training files whose labels are 0 and 1.
    """
    files = [_EvaluationFile(find_file(path), texts=texts, label=label) for path in evaluation]
    lookup = _Lookup(files)
    first, second = array("q"), array("q")
    rows = 0
    for path in map(find_file, train):
        pairs = (array("q"), array("q"))
        binary = True
        for _, row, cell in _read(path, texts=texts, label=label):
            if row is None:
                continue
            rows += 1
            folded = lookup.see(row)
            if len(folded) == 2 and binary:
                number = None if cell is None else parse_number(cell)
                binary = number in (_DUPLICATE, _DIFFERENT)
                if number == _DUPLICATE:
                    pairs[0].append(hash(folded[0]))
                    pairs[1].append(hash(folded[1]))
        if binary:
            first.extend(pairs[0])
            second.extend(pairs[1])
    components = Components(_hashes(first), _hashes(second))
    return OverlapReport(
        train=[str(path) for path in train],
        train_rows=rows,
        duplicates=len(first),
        files=[_overlap_of(file, lookup, components) for file in files],
    )


def _read(
    path: Path, *, texts: Sequence[Column] | None, label: Column | None
) -> Iterator[tuple[int, Texts | None, str | None]]:
    """Line, texts and label of each row; None for the texts of a row that lacks one."""
    chosen = guess_columns(path, texts=texts, label=label, argument="text")
    width = len(chosen.texts)
    for row in read_rows(path, wanted(chosen.texts, chosen.label), chosen.reading):
        values = row.values[:width]
        cell = row.values[width] if len(row.values) > width else None
        usable = row.problem is None and all(values)
        yield row.line, tuple(value or "" for value in values) if usable else None, cell


def _hashes(values: array[int]) -> NDArray[np.uint64]:
    return np.frombuffer(values, np.int64).view(np.uint64) if values else np.empty(0, np.uint64)


def _overlap_of(file: _EvaluationFile, lookup: _Lookup, components: Components) -> FileOverlap:
    exact = np.array([_unordered(row) in lookup.exact for row in file.rows])
    folded = np.array([_unordered(row) in lookup.folded for row in file.folded])
    known, counts = np.unique(file.labels, return_counts=True)
    few = len(known) <= EXAMPLES
    texts, implied = None, None
    if file.width == 2:
        seen = np.array([all(text in lookup.texts for text in row) for row in file.folded])
        texts = SeenRows.of(seen, file.lines)
        sides = (array("q", map(hash, side)) for side in zip(*file.folded, strict=True))
        connected = components.connect(*map(_hashes, sides))
        groups = {str(name): file.labels == name for name in known} if few else {}
        groups = groups or {"all": np.ones(len(file.rows), np.bool_)}
        implied = {
            name: SeenRows.of(connected & group, file.lines) for name, group in groups.items()
        }
    return FileOverlap(
        file=str(file.path),
        rows=len(file.rows),
        bad=file.bad,
        exact=SeenRows.of(exact, file.lines),
        folded=SeenRows.of(folded, file.lines),
        texts=texts,
        implied=implied if len(components.texts) else None,
        labels={str(name): int(n) for name, n in zip(known, counts, strict=True)} if few else {},
    )
