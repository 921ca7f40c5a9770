"""Ragged batches on the host: plain numpy, nothing padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Pieces:
    """Word pieces of n texts laid end to end, without special tokens.

    ids: int32 [total]
    offsets: int64 [n + 1]; text i is ids[offsets[i]:offsets[i + 1]]
    lengths: int64 [n], pieces of each text before any cut, so that truncation can be counted
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: NDArray[np.int64]) -> Pieces:
        """The pieces of the texts at `rows` [m], in their order."""
        held = np.diff(self.offsets)[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(held)])
        places = np.repeat(self.offsets[:-1][rows] - offsets[:-1], held) + np.arange(offsets[-1])
        return Pieces(ids=self.ids[places], offsets=offsets, lengths=self.lengths[rows])


@dataclass(frozen=True, slots=True)
class Tokens:
    """A ragged batch of n sentences or joined pairs, special tokens included.

    ids: int32 [total]
    types: int32 [total], 1 on the second sentence of a joined pair where the encoder knows types
    offsets: int64 [n + 1]
    longest: tokens of the longest row
    truncated: rows that lost pieces to the limit
    """

    ids: NDArray[np.int32]
    types: NDArray[np.int32]
    offsets: NDArray[np.int64]
    longest: int
    truncated: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, int64 [n]."""
        return self.offsets[1:] - self.offsets[:-1]


def concatenate(batches: Sequence[Tokens]) -> Tokens:
    """Lay several ragged batches end to end as one."""
    lengths = np.concatenate([batch.lengths for batch in batches])
    return Tokens(
        ids=np.concatenate([batch.ids for batch in batches]),
        types=np.concatenate([batch.types for batch in batches]),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
        longest=max(batch.longest for batch in batches),
        truncated=sum(batch.truncated for batch in batches),
    )


def padded(tokens: Tokens, *, rows: int, total: int, longest: int, filler: int) -> Tokens:
    """Append rows of `filler` so that a batch has exactly `rows` rows and `total` tokens.

    Kernels and captured graphs that want fixed shapes get them so; what is computed for the
    appended rows is thrown away. No row becomes longer than `longest`.
    """
    added, spare = rows - len(tokens), total - len(tokens.ids)
    lengths = np.diff(np.linspace(0, spare, added + 1).astype(np.int64))[::-1]
    if (
        added < 0
        or lengths.sum() != spare
        or (added and not 1 <= lengths[-1] <= lengths[0] <= longest)
    ):
        raise ValueError(f"{added} rows of 1 to {longest} tokens cannot hold {spare} tokens")
    return Tokens(
        ids=np.concatenate([tokens.ids, np.full(spare, filler, np.int32)]),
        types=np.concatenate([tokens.types, np.zeros(spare, np.int32)]),
        offsets=np.concatenate([tokens.offsets, tokens.offsets[-1] + np.cumsum(lengths)]),
        longest=longest,
        truncated=tokens.truncated,
    )
