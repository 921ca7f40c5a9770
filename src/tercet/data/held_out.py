"""Rows that training leaves out: scalings are fitted on some, others are in dev."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

SEED = 11711
# Trees write brackets so, and with them the sentences of SST; its phrases have plain ones.
_BRACKETS = {"-lrb-": "(", "-rrb-": ")"}


def held_out_rows(count: int, *, share: float, seed: int = SEED) -> Rows:
    """The rows of a split that a scaling is fitted on, ascending; the same every time."""
    held = max(1, round(count * share))
    return np.sort(np.random.default_rng(seed).permutation(count)[:held])


def rows_apart(texts: Sequence[list[str]], held_out: Sequence[list[str]]) -> Rows:
    """The rows that reveal nothing of held-out rows, ascending.

    texts, held_out: one list per text column
    A sentence or phrase reveals a held-out one that contains it, word by word; a pair reveals only
    the same pair.
    """
    rows = [_words(row) for row in zip(*texts, strict=True)]
    lengths = {len(row[0]) for row in rows}
    revealing: set[tuple[tuple[str, ...], ...]] = set()
    for held in map(_words, zip(*held_out, strict=True)):
        revealing |= {held} if len(held) > 1 else {(part,) for part in _parts(held[0], lengths)}
    return np.array([place for place, row in enumerate(rows) if row not in revealing], np.int64)


def rows_not_in(texts: Sequence[list[str]], known: Sequence[list[str]]) -> Rows:
    """The rows that are not known rows, ascending; pairs are compared in either order.

    texts, known: one list per text column
    """
    rows = {tuple(sorted(row)) for row in map(_words, zip(*known, strict=True))}
    fresh = [
        place
        for place, row in enumerate(map(_words, zip(*texts, strict=True)))
        if tuple(sorted(row)) not in rows
    ]
    return np.array(fresh, np.int64)


def _words(row: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_BRACKETS.get(word, word) for word in text.lower().split()) for text in row)


def _parts(words: tuple[str, ...], lengths: set[int]) -> set[tuple[str, ...]]:
    """All runs of words of these lengths."""
    return {
        words[start : start + length]
        for length in lengths
        for start in range(len(words) - length + 1)
    }
