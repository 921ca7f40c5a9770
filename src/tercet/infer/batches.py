"""Batches of rows of similar cost: sorted by tokens, filled to a token budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tercet.text.template import Slot, Template
from tercet.text.tokens import Pieces

Rows = NDArray[np.int64]


def batches(lengths: Rows, *, budget: int) -> list[Rows]:
    """Row indices in batches of at most `budget` tokens, longest rows first.

    lengths: tokens of each row, int64 [n]
    A row longer than the budget is a batch of its own.
    """
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    row_batches: list[Rows] = []
    start = 0
    while start < len(order):
        used = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, used + budget, side="right")), start + 1)
        row_batches.append(order[start:end])
        start = end
    return row_batches


def even_batches(lengths: Rows, *, budget: int) -> list[Rows]:
    """Row indices in batches of similar length, longest rows first, for engines that pad.

    lengths: tokens of each row, int64 [n]
    A batch has at most `budget` tokens including padding, or one row. Rows of one length that
    fill half of the budget are not mixed; others are joined while padding stays small.
    """
    order = np.argsort(-lengths, kind="stable")
    ordered = lengths[order]
    row_batches: list[Rows] = []
    start = 0
    while start < len(order):
        longest = int(ordered[start])
        window = ordered[start : start + max(budget // longest, 1)]
        alike = int(np.searchsorted(-window, -longest, side="right"))
        size = alike
        if 2 * alike * longest < budget:
            padding = np.cumsum(longest - window)
            size = int(np.searchsorted(padding, budget // 8, side="right"))
        row_batches.append(order[start : start + size])
        start += size
    return row_batches


def single_lengths(pieces: Pieces, *, template: Template, max_tokens: int) -> Rows:
    """Tokens of each text, special ones included, int64 [n]."""
    lengths: Rows = pieces.held + special(template.single_slots)
    lengths[lengths > max_tokens] = max_tokens
    return lengths


def pair_lengths(first: Pieces, second: Pieces, *, template: Template, max_tokens: int) -> Rows:
    """Tokens of each joined pair, special ones included, int64 [n]."""
    lengths: Rows = first.held + second.held + special(template.pair_slots)
    lengths[lengths > max_tokens] = max_tokens
    return lengths


def special(slots: tuple[Slot, ...]) -> int:
    """Special tokens of a row."""
    return sum(slot.text is None for slot in slots)
