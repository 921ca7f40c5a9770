"""Attention with dropout of its weights on a CPU: few calls for rows of many lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from tercet.nn.device_tokens import AttentionBlock

# Padded scores of a head that cost about as much time as the calls of one more block.
_WORTH_A_BLOCK = 8192


@dataclass(frozen=True, slots=True)
class MergedBlocks:
    """Adjacent blocks without padding, padded to the length of the longest.

    slots: int64 [tokens], the place of each token among the padded ones; None without padding
    added: what is added to the scores, each [rows or 1, heads or 1, length or 1, length]
    """

    blocks: tuple[AttentionBlock, ...]
    slots: Tensor | None
    added: tuple[Tensor, ...]

    @property
    def rows(self) -> int:
        return sum(block.rows for block in self.blocks)

    @property
    def length(self) -> int:
        return self.blocks[-1].length

    @property
    def tokens(self) -> int:
        return sum(block.rows * block.length for block in self.blocks)


def merge(
    blocks: Sequence[AttentionBlock], biases: Sequence[Tensor | None]
) -> tuple[MergedBlocks, ...]:
    """Merge blocks of exact lengths where padding costs less than their calls.

    biases: of each block; those of shorter rows are the beginnings of those of longer ones
    """
    groups: list[tuple[list[AttentionBlock], Tensor | None]] = []
    for block, bias in zip(reversed(blocks), reversed(biases), strict=True):
        if groups and _is_worth_merging(block, into=groups[-1][0][-1]):
            groups[-1][0].insert(0, block)
        else:
            groups.append(([block], bias))
    return tuple(_merged(members, bias) for members, bias in reversed(groups))


def attend_merged(qkv: Tensor, merged: Sequence[MergedBlocks], *, dropout: float) -> Tensor:
    """qkv [total, 3, heads, head_width] -> [total, heads, head_width]."""
    parts = qkv.split_with_sizes([each.tokens for each in merged])
    mixed = [_attend(part, each, dropout) for part, each in zip(parts, merged, strict=True)]
    return mixed[0] if len(mixed) == 1 else torch.cat(mixed)


def _is_worth_merging(block: AttentionBlock, *, into: AttentionBlock) -> bool:
    # A batch that came sorted may begin with its longest rows, which cannot be padded to shorter.
    padding = block.rows * (into.length**2 - block.length**2)
    return 0 <= padding < _WORTH_A_BLOCK


def _merged(blocks: list[AttentionBlock], bias: Tensor | None) -> MergedBlocks:
    added = () if bias is None else (bias,)
    if len(blocks) == 1:
        return MergedBlocks(tuple(blocks), None, added)
    length = blocks[-1].length
    lengths = torch.tensor([block.length for block in blocks]).repeat_interleave(
        torch.tensor([block.rows for block in blocks])
    )
    real = torch.arange(length) < lengths[:, None]
    padding = torch.zeros(real.shape).masked_fill(~real, -math.inf)[:, None, None, :]
    return MergedBlocks(tuple(blocks), real.flatten().nonzero()[:, 0], (*added, padding))


def _attend(qkv: Tensor, merged: MergedBlocks, dropout: float) -> Tensor:
    heads, width = qkv.shape[2:]
    rows, length = merged.rows, merged.length
    # At least in float32, as torch's own attention with dropout is.
    dtype = torch.promote_types(qkv.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        if merged.slots is not None:
            padded = qkv.new_zeros(rows * length, *qkv.shape[1:])
            qkv = padded.index_copy(0, merged.slots, qkv)
        ordered = qkv.view(rows, length, 3, heads, width).permute(2, 0, 3, 1, 4)
        query, key, value = (
            ordered.to(dtype, memory_format=torch.contiguous_format).flatten(1, 2).unbind(0)
        )
        scores = torch.bmm(query / math.sqrt(width), key.mT).view(rows, heads, length, length)
        for added in merged.added:
            # In place: with long texts scores are most of the memory.
            scores.add_(added)
        kept = scores.softmax(-1).mul(_factors(merged.blocks, heads, dropout))
        mixed = torch.bmm(kept.flatten(0, 1), value).view(rows, heads, length, width)
        mixed = mixed.transpose(1, 2).to(qkv.dtype).reshape(-1, heads, width)
    return mixed if merged.slots is None else mixed.index_select(0, merged.slots)


def _factors(blocks: Sequence[AttentionBlock], heads: int, dropout: float) -> Tensor:
    """What weights are multiplied with [rows, heads, length, length]: 0, or more than 1.

    Each block draws its own, so that results do not depend on which are merged.
    """
    drawn = [
        torch.empty(block.rows, heads, block.length, block.length).bernoulli_(1.0 - dropout)
        for block in blocks
    ]
    if len(drawn) == 1:
        return drawn[0].div_(1.0 - dropout)
    ends = list(accumulate(block.rows for block in blocks))
    length = blocks[-1].length
    factors = torch.zeros(ends[-1], heads, length, length)
    for end, block, own in zip(ends, blocks, drawn, strict=True):
        factors[end - block.rows : end, :, : block.length, : block.length] = own
    return factors.div_(1.0 - dropout)
