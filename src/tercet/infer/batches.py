"""Batches of rows that cost about the same: sorted by tokens, filled to a token budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tercet.text.template import Slot, Template
from tercet.text.tokens import Pieces

Rows = NDArray[np.int64]


def batches(lengths: Rows, *, budget: int) -> list[Rows]:
    """Row indices in batches of at most `budget` tokens, the longest rows first.

    lengths: tokens of each row, int64 [n]
    A row that is longer than the budget is a batch of its own.
    """
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    found: list[Rows] = []
    start = 0
    while start < len(order):
        used = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, used + budget, side="right")), start + 1)
        found.append(order[start:end])
        start = end
    return found


def single_lengths(pieces: Pieces, *, template: Template, max_tokens: int) -> Rows:
    """Tokens that each text costs by itself, int64 [n]."""
    lengths: Rows = np.diff(pieces.offsets) + _special(template.one)
    lengths[lengths > max_tokens] = max_tokens
    return lengths


def pair_lengths(first: Pieces, second: Pieces, *, template: Template, max_tokens: int) -> Rows:
    """Tokens that each pair costs when it is joined, int64 [n]."""
    lengths: Rows = np.diff(first.offsets) + np.diff(second.offsets) + _special(template.two)
    lengths[lengths > max_tokens] = max_tokens
    return lengths


def _special(slots: tuple[Slot, ...]) -> int:
    return sum(slot.text is None for slot in slots)
