"""Batches of rows of similar cost: sorted by tokens, filled to a token budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tercet.text.template import Template, special_count
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


def shares(lengths: Rows, *, least: int, most: int, threads: int) -> list[Rows]:
    """Row indices in batches with which all threads end at about the same time: equally many for
    each, of about as many tokens, longest rows first.

    lengths: tokens of each row, int64 [n]
    least, most: tokens of a batch, give or take a row; few rows are not divided for all threads
    """
    total = int(lengths.sum())
    if threads == 1 or not total:
        return batches(lengths, budget=most)
    count = min(threads * -(-total // (most * threads)), -(-total // least))
    order = np.argsort(-lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    wanted = total * np.arange(1, count) / count
    after = np.searchsorted(ends, wanted)
    is_nearer = 2 * wanted >= 2 * ends[after] - lengths[order[after]]
    return [rows for rows in np.split(order, after + is_nearer) if len(rows)]


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


def token_counts(columns: Sequence[Pieces], *, template: Template, max_tokens: int) -> Rows:
    """Tokens of each text, or of each joined pair, special ones included, int64 [n]."""
    special = special_count(template.single_slots if len(columns) == 1 else template.pair_slots)
    counts: Rows = np.minimum(sum(pieces.held for pieces in columns) + special, max_tokens)
    return counts
