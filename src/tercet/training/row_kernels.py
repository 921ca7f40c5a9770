"""Triton kernels for the rows of `training.gradients`: each reads all rows once.

Rows are as long as an encoder has parameters, so that time is what reading memory takes.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Programs that keep sums: some for each of a GPU's processors.
_PROGRAMS = 1056
# Numbers that one program keeps: products of all pairs of rows, at several places.
_KEPT = 8192
_BLOCK = 2048


@triton.jit(do_not_specialize=["each"])
def _gramian(
    rows, sums, length, each, ROWS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.arange(0, PADDED)
    place = tl.arange(0, BLOCK)
    products = tl.zeros([PADDED, PADDED, BLOCK], tl.float32)
    begin = tl.program_id(0).to(tl.int64) * each
    starts = row.to(tl.int64)[:, None] * length
    for block in range(begin, begin + each, BLOCK):
        at = block + place
        inside = (row < ROWS)[:, None] & (at < length)[None, :]
        x = tl.load(rows + starts + at[None, :], inside, 0.0)
        products += x[:, None, :] * x[None, :, :]
    pair = row[:, None] * PADDED + row[None, :]
    tl.store(sums + tl.program_id(0) * PADDED * PADDED + pair, tl.sum(products, 2))


@triton.jit
def _combine(rows, weights, length, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < length
    total = tl.zeros([BLOCK], tl.float32)
    for row in tl.static_range(ROWS):
        total += tl.load(weights + row) * tl.load(rows + at, inside, 0.0)
        at += length
    at -= ROWS * length
    tl.store(rows + at, total, inside)


def gramian(rows: Tensor) -> Tensor:
    """Inner products of contiguous rows [rows, length] with each other, [rows, rows]."""
    count, length = rows.shape
    padded = max(2, 1 << (count - 1).bit_length())
    block = max(16, _KEPT // padded**2)
    each = -(-length // (_PROGRAMS * block)) * block
    programs = -(-length // each)
    sums = torch.empty(programs, padded, padded, device=rows.device)
    _gramian[(programs,)](rows, sums, length, each, ROWS=count, PADDED=padded, BLOCK=block)
    return sums.sum(0)[:count, :count]


def combine(rows: Tensor, weights: Tensor) -> None:
    """Replace the first of contiguous rows [rows, length] by their weighted sum."""
    count, length = rows.shape
    grid = (-(-length // _BLOCK),)
    # Some surgeries solve for their weights on the CPU.
    _combine[grid](rows, weights.to(rows).contiguous(), length, ROWS=count, BLOCK=_BLOCK)
