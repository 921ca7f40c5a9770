"""What a model was trained on, as a sketch: which rows it has seen, and which pairs these imply.

Rows are 64-bit hashes of folded texts, of which about 17 bits are stored. So a sketch is small,
does not hold texts, and takes at most 0.1 % of other rows for its own. But it discloses membership:
whoever has a row can ask whether it was there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tercet.data.components import Components
from tercet.data.folding import fold

Hashes = NDArray[np.uint64]
Found = NDArray[np.bool_]
Arrays = dict[str, NDArray[np.uint16]]
_LOW = 16  # bits of a hash that are stored as they are
_IN_BUCKET = 32  # hashes on average, at most: a false alarm has a chance of 32 / 2^16
_LEAST_GROUP = 3  # texts: two that are a pair imply nothing but that pair


def hash_row(texts: Iterable[str]) -> int:
    """64 bits of the folded texts of a row, in any order; the same on every machine."""
    joined = "\x1f".join(sorted(map(fold, texts)))
    return int.from_bytes(blake2b(joined.encode(), digest_size=8).digest(), "little")


def hash_rows(columns: Sequence[Sequence[str]]) -> Hashes:
    """The hashes of n rows, given as columns of texts."""
    rows = zip(*columns, strict=True)
    return np.frombuffer(array("Q", map(hash_row, rows)), np.uint64)


class HashSet:
    """Hashes by their first bits (a bucket) and their last 16.

    counts: uint16 [buckets], a power of two; lows: uint16 [n], ascending within each bucket
    """

    def __init__(self, counts: NDArray[np.uint16], lows: NDArray[np.uint16]) -> None:
        self.counts = counts
        self.lows = lows

    @cached_property
    def _keys(self) -> Hashes:
        """Of all members, ascending; made when first asked, since most models are never asked."""
        buckets = np.repeat(np.arange(len(self.counts), dtype=np.uint64), self.counts)
        return buckets << np.uint64(_LOW) | self.lows

    @classmethod
    def of(cls, hashes: Hashes) -> tuple[HashSet, NDArray[np.int64]]:
        """A set, and for each of its members the place of the first hash that it came from."""
        buckets = 1
        while len(hashes) > buckets * _IN_BUCKET:
            buckets *= 2
        keys, places = np.unique(_keys(hashes, buckets), return_index=True)
        counts = np.bincount((keys >> np.uint64(_LOW)).astype(np.int64), minlength=buckets)
        lows = (keys & np.uint64(2**_LOW - 1)).astype(np.uint16)
        return cls(counts.astype(np.uint16), lows), places

    def check(self) -> None:
        """Raise a ValueError unless the arrays fit together: what they claim is made in memory."""
        buckets, members = len(self.counts), int(self.counts.sum(dtype=np.int64))
        if not buckets or buckets & (buckets - 1) or members != len(self.lows):
            raise ValueError(f"{buckets} buckets for {members} of {len(self.lows)} hashes")

    def __len__(self) -> int:
        return len(self.lows)

    def places(self, hashes: Hashes) -> NDArray[np.int64]:
        """The place of each hash among the members, or -1."""
        if not len(self._keys):
            return np.full(len(hashes), -1, np.int64)
        keys = _keys(hashes, len(self.counts))
        found = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[found] == keys, found, -1)


def _keys(hashes: Hashes, buckets: int) -> Hashes:
    bits = buckets.bit_length() - 1
    first = hashes >> np.uint64(64 - bits) if bits else np.zeros_like(hashes)
    return first << np.uint64(_LOW) | hashes & np.uint64(2**_LOW - 1)


@dataclass(frozen=True, slots=True)
class SketchPart:
    """The rows of one run.

    rows: all of them
    texts: those that known duplicates connect with at least two others; groups: uint16 [texts],
        equal within a component
    """

    rows: HashSet
    texts: HashSet
    groups: NDArray[np.uint16]

    def seen(self, rows: Hashes) -> Found:
        return self.rows.places(rows) >= 0

    def implied(self, first: Hashes, second: Hashes) -> Found:
        ours, theirs = self.texts.places(first), self.texts.places(second)
        if not len(self.groups):
            return np.zeros(len(first), np.bool_)
        known: Found = (ours >= 0) & (theirs >= 0)
        connected: Found = known & (self.groups[ours] == self.groups[theirs])
        return connected


@dataclass(frozen=True, slots=True)
class Sketch:
    """The rows that a model was trained on, in one run or several."""

    parts: tuple[SketchPart, ...]

    @property
    def rows(self) -> int:
        """How many different rows it has."""
        return sum(len(part.rows) for part in self.parts)

    def seen(self, columns: Sequence[Sequence[str]]) -> Found:
        """Whether each of n rows was trained on, folded; pairs in either order.

        columns: of n texts each
        """
        hashes = hash_rows(columns)
        found: Found = np.any([part.seen(hashes) for part in self.parts], axis=0)
        return found

    def implied(self, first: Sequence[str], second: Sequence[str]) -> Found:
        """Whether known duplicates connect the two texts of each of n pairs."""
        sides = hash_rows([first]), hash_rows([second])
        found: Found = np.any([part.implied(*sides) for part in self.parts], axis=0)
        return found

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch((*self.parts, *other.parts))

    def to_arrays(self) -> Arrays:
        """For a file; `from_arrays` reads them."""
        arrays: Arrays = {}
        for number, part in enumerate(self.parts):
            arrays |= {
                f"{number}.rows.counts": part.rows.counts,
                f"{number}.rows.lows": part.rows.lows,
                f"{number}.texts.counts": part.texts.counts,
                f"{number}.texts.lows": part.texts.lows,
                f"{number}.groups": part.groups,
            }
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.uint16]]) -> Sketch:
        """Raises KeyError or ValueError where arrays are missing or do not fit together."""
        if not arrays or len(arrays) % 5:
            raise ValueError(f"{len(arrays)} arrays, where each run has five")
        for name, each in arrays.items():
            if each.dtype != np.uint16 or each.ndim != 1:
                raise ValueError(f"`{name}` is {each.dtype} of shape {list(each.shape)}")
        parts = []
        for number in range(len(arrays) // 5):
            rows, texts = (
                HashSet(arrays[f"{number}.{name}.counts"], arrays[f"{number}.{name}.lows"])
                for name in ("rows", "texts")
            )
            rows.check()
            texts.check()
            groups = arrays[f"{number}.groups"]
            if len(groups) != len(texts):
                raise ValueError(f"{len(groups)} groups of {len(texts)} texts")
            parts.append(SketchPart(rows, texts, groups))
        return cls(tuple(parts))


class SketchBuilder:
    """Collects the rows of a run, 8 bytes each, and its known duplicates, 16 bytes each."""

    def __init__(self) -> None:
        self._rows: list[Hashes] = []
        self._pairs: list[tuple[Hashes, Hashes]] = []

    def add_rows(self, columns: Sequence[Sequence[str]]) -> None:
        """n rows, given as columns of texts."""
        self._rows.append(hash_rows(columns))

    def add_duplicates(self, first: Sequence[str], second: Sequence[str]) -> None:
        """n pairs of texts that mean the same."""
        self._pairs.append((hash_rows([first]), hash_rows([second])))

    def finish(self) -> Sketch:
        nothing = np.empty(0, np.uint64)
        rows, _ = HashSet.of(np.unique(np.concatenate([nothing, *self._rows])))
        first, second = (
            np.concatenate([nothing, *(pair[side] for pair in self._pairs)]) for side in (0, 1)
        )
        components = Components(first, second)
        sizes = np.bincount(components.numbers, minlength=1)
        large = sizes[components.numbers] >= _LEAST_GROUP
        texts, places = HashSet.of(components.texts[large])
        _, groups = np.unique(components.numbers[large], return_inverse=True)
        kept = (groups[places] % 2**_LOW).astype(np.uint16)
        return Sketch((SketchPart(rows, texts, kept),))
