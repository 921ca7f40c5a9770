"""Rows that training leaves out: scalings are fitted on some, and dev is judged by others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

# How trees write brackets, and with them SST's sentences, while its phrases have plain ones.
_BRACKETS = {"-lrb-": "(", "-rrb-": ")"}


def rows_apart(texts: Sequence[list[str]], held_out: Sequence[list[str]]) -> Rows:
    """The rows that tell nothing of held-out rows, rising.

    texts, held_out: one list a text column
    A sentence or phrase tells of one that it stands in, word by word; a pair, of the same pair.
    """
    rows = [_words(row) for row in zip(*texts, strict=True)]
    lengths = {len(row[0]) for row in rows}
    told: set[tuple[tuple[str, ...], ...]] = set()
    for held in map(_words, zip(*held_out, strict=True)):
        told |= {held} if len(held) > 1 else {(part,) for part in _parts(held[0], lengths)}
    return np.array([place for place, row in enumerate(rows) if row not in told], np.int64)


def rows_not_in(texts: Sequence[list[str]], known: Sequence[list[str]]) -> Rows:
    """The rows that are no known row, rising; a pair is one in either order.

    texts, known: one list a text column
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
    """All runs of these lengths."""
    return {
        words[start : start + length]
        for length in lengths
        for start in range(len(words) - length + 1)
    }
