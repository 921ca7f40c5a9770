"""Ragged batches on the host: plain numpy, nothing padded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
FEW = 32
"""Texts up to which a dictionary finds the distinct ones faster than sorted hashes."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Word pieces of n texts, end to end, without special tokens.

    ids: int32 [total]
    offsets: int64 [n + 1]; text i is ids[offsets[i]:offsets[i + 1]]
    lengths: int64 [n], pieces of each text before any cut, so that truncation can be counted
    ends: bool [total], whether a sentence ends after a piece: texts that are too long are read in
        windows; None: they are truncated
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    ends: NDArray[np.bool_] | None = None

    @classmethod
    def of_ids(cls, texts: Iterable[Sequence[int] | NDArray[np.int32]], *, limit: int) -> Pieces:
        """The first `limit` ids of each text."""
        ids, lengths = [np.zeros(0, np.int32)], []
        for text in texts:
            ids.append(np.asarray(text[:limit], np.int32))
            lengths.append(len(text))
        before = np.array(lengths, np.int64)
        return cls(np.concatenate(ids), offsets_of(np.minimum(before, limit)), before)

    @classmethod
    def of_flat(
        cls, ids: NDArray[np.int32], lengths: NDArray[np.int64], *, limit: int | None
    ) -> Pieces:
        """The first `limit` ids of each text, or all.

        ids: of all texts, one after the other, int32 [total]
        lengths: ids of each text, int64 [n]
        """
        if limit is None or not (lengths > limit).any():
            return cls(ids, offsets_of(lengths), lengths)
        held = np.minimum(lengths, limit)
        starts = offsets_of(lengths)[:-1]
        return cls(ids[spans(starts, held)], offsets_of(held), lengths)

    @classmethod
    def concat(cls, parts: Sequence[Pieces]) -> Pieces:
        """The texts of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)]),
            offsets_of(np.concatenate([none, *(part.held for part in parts)])),
            np.concatenate([none, *(part.lengths for part in parts)]),
            _concat_ends(parts),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def held(self) -> NDArray[np.int64]:
        """Pieces of each text after any cut, int64 [n]."""
        return self.offsets[1:] - self.offsets[:-1]

    def take(self, rows: Rows) -> Pieces:
        """The texts at `rows` [m], in that order."""
        starts = self.offsets[:-1][rows]
        held = self.offsets[1:][rows] - starts
        places = spans(starts, held)
        ends = None if self.ends is None else self.ends[places]
        return Pieces(self.ids[places], offsets_of(held), self.lengths[rows], ends)

    def first(self, count: int) -> Pieces:
        """The first `count` texts, not copied."""
        offsets = self.offsets[: count + 1]
        ends = None if self.ends is None else self.ends[: offsets[-1]]
        return Pieces(self.ids[: offsets[-1]], offsets, self.lengths[:count], ends)

    def repeat(self, count: int) -> Pieces:
        """All texts, `count` times."""
        return self.take(np.tile(np.arange(len(self)), count))

    def distinct(self) -> tuple[Rows, Rows]:
        """The first row of each distinct text [m], and for each text its place among them [n]."""
        if len(self) <= FEW:
            return self._distinct_by_keys()
        hashes = self._hashes()
        _, firsts, groups = np.unique(hashes, return_index=True, return_inverse=True)
        if len(firsts) == len(self):
            every = np.arange(len(self))
            return every, every
        repeated = np.flatnonzero(firsts[groups] != np.arange(len(self)))
        if not self.take(repeated).is_equal(self.take(firsts[groups[repeated]])):
            return self._distinct_by_keys()  # two texts with one hash
        order = np.argsort(firsts)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return firsts[order], places[groups]

    def is_equal(self, other: Pieces) -> bool:
        """Whether all texts hold the same pieces, and sentences end at the same of them."""
        if self.ends is None or other.ends is None:
            same_ends = self.ends is other.ends
        else:
            same_ends = np.array_equal(self.ends, other.ends)
        same_lengths = np.array_equal(self.offsets, other.offsets)
        return same_ends and same_lengths and np.array_equal(self.ids, other.ids)

    def _hashes(self) -> NDArray[np.uint64]:
        """A hash of what each text holds [n]: sums of products with odd numbers, modulo 2**64."""
        held = self.held
        longest = int(held.max(initial=0))
        odd = np.random.default_rng(0).integers(1 << 63, size=longest + 1, dtype=np.uint64) * 2 + 1
        values = self.ids.astype(np.uint64) * 2 + 1
        if self.ends is not None:
            # Windows of the same pieces differ where sentences end elsewhere.
            values += self.ends.astype(np.uint64) << np.uint64(40)
        sums = np.zeros(len(values) + 1, np.uint64)
        np.cumsum(values * odd[spans(np.zeros_like(held), held)], out=sums[1:])
        hashes: NDArray[np.uint64] = sums[self.offsets[1:]] - sums[self.offsets[:-1]]
        return hashes

    def _distinct_by_keys(self) -> tuple[Rows, Rows]:
        places: dict[bytes, int] = {}
        rows: list[int] = []
        place_of = np.empty(len(self), np.int64)
        for row, key in enumerate(self.keys()):
            place = places.setdefault(key, len(rows))
            if place == len(rows):
                rows.append(row)
            place_of[row] = place
        return np.array(rows, np.int64), place_of

    def keys(self) -> Iterator[bytes]:
        """One key per text; texts with the same pieces have the same key."""
        for start, end in pairwise(self.offsets.tolist()):
            key = self.ids[start:end].tobytes()
            yield key if self.ends is None else key + self.ends[start:end].tobytes()


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

    @classmethod
    def concat(cls, batches: Sequence[Tokens]) -> Tokens:
        """The rows of all batches, in their order."""
        return cls(
            ids=np.concatenate([batch.ids for batch in batches]),
            types=np.concatenate([batch.types for batch in batches]),
            offsets=offsets_of(np.concatenate([batch.lengths for batch in batches])),
            longest=max(batch.longest for batch in batches),
            truncated=sum(batch.truncated for batch in batches),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, int64 [n]."""
        return self.offsets[1:] - self.offsets[:-1]


def _concat_ends(parts: Sequence[Pieces]) -> NDArray[np.bool_] | None:
    if all(part.ends is None for part in parts):
        return None
    marked = [np.zeros(len(p.ids), np.bool_) if p.ends is None else p.ends for p in parts]
    return np.concatenate(marked)


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows of these lengths [n] begin, and where the last one ends, int64 [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def spans(starts: Rows, lengths: Rows) -> Rows:
    """starts[0], starts[0] + 1, ... for lengths[0] places, then from starts[1]: int64 [total]."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


def padded(tokens: Tokens, *, rows: int, total: int, longest: int, filler: int) -> Tokens:
    """Append rows of `filler` so that a batch has exactly `rows` rows and `total` tokens.

    For kernels and captured graphs with fixed shapes; results for the appended rows are dropped.
    No row becomes longer than `longest`.
    """
    added, spare = rows - len(tokens), total - len(tokens.ids)
    lengths = np.diff(np.linspace(0, spare, added + 1).astype(np.int64))[::-1]
    fits = added <= 0 or 1 <= lengths[-1] <= lengths[0] <= longest
    if added < 0 or lengths.sum() != spare or not fits:
        raise ValueError(f"{added} rows of 1 to {longest} tokens cannot hold {spare} tokens")
    return Tokens(
        ids=np.concatenate([tokens.ids, np.full(spare, filler, np.int32)]),
        types=np.concatenate([tokens.types, np.zeros(spare, np.int32)]),
        offsets=np.concatenate([tokens.offsets, tokens.offsets[-1] + np.cumsum(lengths)]),
        longest=longest,
        truncated=tokens.truncated,
    )
