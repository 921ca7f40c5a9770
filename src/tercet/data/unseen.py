"""Training rows that must be left out so that evaluation rows stay unseen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.data.components import Components
from tercet.data.files import find_file
from tercet.data.layouts import LAYOUTS
from tercet.data.readers import read_rows
from tercet.data.senteval import read_split, read_sts
from tercet.data.sketch import Hashes, hash_rows
from tercet.data.split import choose_dev
from tercet.specs import PairSet

Columns = Sequence[Sequence[str]]
"""n texts per column."""
Flags = NDArray[np.bool_]
Pairs = tuple[Hashes, Hashes]
_NOTHING = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Which of n training rows are left out: evaluation rows, and those that imply some."""

    rows: Flags
    implying: Flags

    @property
    def fresh(self) -> Flags:
        return ~(self.rows | self.implying)

    def counts(self) -> dict[str, int]:
        """Rows that are left out, each counted once."""
        return {
            "evaluation rows": int(self.rows.sum()),
            "implying": int((self.implying & ~self.rows).sum()),
        }


class Unseen:
    """Evaluation rows, and the known duplicates that would imply them."""

    def __init__(
        self, *, dev: Sequence[Columns], sets: Sequence[Columns], duplicates: Sequence[Columns]
    ) -> None:
        """Rows of one text or pairs, each as columns; duplicates: pairs that are known to mean the
        same, over all tasks."""
        self._dev, self._sets = (_union(hash_rows(rows) for rows in part) for part in (dev, sets))
        known = [_sides(pairs) for pairs in duplicates]
        first, second = (_joined(pairs[side] for pairs in known) for side in (0, 1))
        wanted = [_sides(rows) for rows in (*dev, *sets) if len(rows) == 2]
        apart = _texts_to_part(known=(first, second), wanted=wanted)
        # Of each pair of known duplicates as a row, since other tasks may have it too.
        self._cut = _union(
            hash_rows(rows)[np.isin(one, apart) | np.isin(two, apart)]
            for rows, (one, two) in zip(duplicates, known, strict=True)
        )

    def left_out(self, columns: Columns, *, keeps_sets: bool) -> LeftOut:
        """What to leave out of n rows; keeps_sets: whether rows of `sets` stay.

        A known duplicate that is left out of one task is left out of all.
        """
        hashes = hash_rows(columns)
        rows = np.isin(hashes, self._dev)
        if not keeps_sets:
            rows |= np.isin(hashes, self._sets)
        return LeftOut(rows, np.isin(hashes, self._cut))


def read_pairs(name: PairSet, data_dir: Path) -> Columns:
    """The pairs of a suite's set."""
    if name == "MRPC":
        return read_split("MRPC", "test", data_dir).texts
    if name == "PAWS":
        return _read_paws(data_dir)
    pairs = read_sts(name, data_dir)
    return pairs.first, pairs.second


def _read_paws(data_dir: Path) -> Columns:
    layout = LAYOUTS["paws-split"]
    assert isinstance(layout.dev, float)
    path = find_file(f"{layout.folder}/{layout.train[0]}", [data_dir])
    rows = [row.values for row in read_rows(path, list(layout.texts), layout.reading)]
    texts = [[row[side] or "" for row in rows] for side in (0, 1)]
    kept_rows = choose_dev(texts, None, share=layout.dev).rows.tolist()
    return [[column[row] for row in kept_rows] for column in texts]


def _texts_to_part(*, known: Pairs, wanted: Sequence[Pairs]) -> Hashes:
    """Texts without whose known duplicates no wanted pair is implied: of each implied pair the text
    that has fewer of them, so that little is lost."""
    components = Components(*known)
    texts, counts = np.unique(np.concatenate(known), return_counts=True)
    chosen = []
    for first, second in wanted:
        implied = components.connect(first, second)
        one, two = first[implied], second[implied]
        if len(one):
            fewer, more = (counts[np.searchsorted(texts, side)] for side in (one, two))
            takes_first = (fewer < more) | ((fewer == more) & (one < two))
            chosen.append(np.where(takes_first, one, two))
    return _union(chosen)


def _sides(columns: Columns) -> Pairs:
    return hash_rows([columns[0]]), hash_rows([columns[1]])


def _joined(parts: Iterator[Hashes]) -> Hashes:
    return np.concatenate([_NOTHING, *parts])


def _union(parts: Iterator[Hashes] | Sequence[Hashes]) -> Hashes:
    return np.unique(np.concatenate([_NOTHING, *parts]))
