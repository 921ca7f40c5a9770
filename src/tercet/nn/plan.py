"""Plans of attention, made on the host: which rows share a block, and where tokens are in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.text.tokens import spans

# Padded tokens that cost an accelerator about as much time as the launches of one more block.
_WORTH_A_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Rows and length of each block, and the arrays of `device_tokens.AttentionPlan`.

    arrays: order, places, slots, and real0, real1, ... for the blocks with padding
    """

    shapes: list[tuple[int, int]]
    arrays: dict[str, NDArray[np.generic]]


def exact_blocks(lengths: NDArray[np.int64]) -> HostPlan:
    """One block per length, no padding: tokens move to their block once, before the first layer.

    On a CPU a call costs little compared with its work, and views of contiguous rows cost nothing.
    """
    if len(lengths) == 1:
        return HostPlan(_shapes(np.ones(1, np.int64), lengths), {})
    present, counts = np.unique(lengths, return_counts=True)
    if len(present) == 1 + np.count_nonzero(np.diff(lengths)):
        # Rows of one length are adjacent already, as in batches sorted by length.
        runs = np.flatnonzero(np.diff(lengths, prepend=-1))
        counts = np.diff(np.append(runs, len(lengths)))
        return HostPlan(_shapes(counts, lengths[runs]), {})
    by_length = np.argsort(lengths, kind="stable")
    starts = np.cumsum(lengths) - lengths
    order = spans(starts[by_length], lengths[by_length])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return HostPlan(_shapes(counts, present), {"order": order, "places": places})


def padded_blocks(lengths: NDArray[np.int64]) -> HostPlan:
    """Few blocks: rows of at most half a block's length get their own if that saves enough.

    On an accelerator launches cost more than padding. Lengths are multiples of 8, as its kernels
    require of a mask. Tokens keep their places, so a variable-length kernel needs no plan.
    """
    by_length = np.argsort(lengths, kind="stable")
    ordered = lengths[by_length]
    shapes: list[tuple[int, int]] = []
    arrays: dict[str, NDArray[np.generic]] = {}
    starts = np.empty(len(lengths), np.int64)
    base, end = 0, len(lengths)
    while end:
        length = _padded_length(ordered[end - 1])
        begin = int(np.searchsorted(ordered, length // 2, side="right"))
        if begin and begin * (length - _padded_length(ordered[begin - 1])) < _WORTH_A_BLOCK:
            begin = 0
        rows = end - begin
        starts[by_length[begin:end]] = base + np.arange(rows) * length
        if ordered[begin] < length:
            arrays[f"real{len(shapes)}"] = np.arange(length) < ordered[begin:end, None]
        shapes.append((rows, length))
        base += rows * length
        end = begin
    arrays["slots"] = spans(starts, lengths)
    return HostPlan(shapes, arrays)


def one_block(lengths: NDArray[np.int64], *, length: int) -> HostPlan:
    """All rows in one block of a fixed length, so that only `lengths` vary."""
    slots = spans(np.arange(len(lengths)) * length, lengths)
    real = np.arange(length) < lengths[:, None]
    return HostPlan([(len(lengths), length)], {"slots": slots, "real0": real})


def _padded_length(length: np.int64) -> int:
    return -(-int(length) // 8) * 8


def _shapes(counts: NDArray[np.integer], lengths: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(counts.tolist(), lengths.tolist(), strict=True))
