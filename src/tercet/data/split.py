"""Dev rows split off the training rows, with no text on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.errors import TercetError

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

SEED = 11711
BINS = 10  # of grades, by their quantiles
PARTS = 4  # dev has at least so many blocks, if there are enough small ones
_LOOSE = (
    "Most pairs are connected by texts that they share, so only equal pairs are kept on one side "
    "of the split: some texts are in both training and dev rows."
)


@dataclass(frozen=True, slots=True)
class DevRows:
    """The rows of dev, ascending, and what a user must know about them."""

    rows: Rows
    remark: str = ""


def split_off(
    texts: Sequence[Sequence[str]],
    labels: Labels | None,
    *,
    share: float,
    groups: Sequence[str | None] | None = None,
    seed: int = SEED,
) -> Rows:
    """The rows that `choose_dev` chooses, ascending."""
    return choose_dev(texts, labels, share=share, groups=groups, seed=seed).rows


def choose_dev(
    texts: Sequence[Sequence[str]],
    labels: Labels | None,
    *,
    share: float,
    groups: Sequence[str | None] | None = None,
    seed: int = SEED,
) -> DevRows:
    """Choose about this share of n rows for dev, the same every time for the same seed.

    Rows that have a text in common (ignoring case and whitespace) stay on one side, and so do rows
    of one group: they are a *block*. Where most rows are in blocks that are larger than dev, as
    under a common premise, only rows that are equal in all texts stay together. Every class (or
    quantile of grades, or rarest label of a row) has the same share in dev, and is on both sides
    where it has two blocks, unless that makes dev twice as large as it should be.

    texts: one list of n per text column
    labels: int64 classes [n], float32 grades [n], or int64 0 and 1 [n, classes]
    groups: n names; a row without one is in no group
    """
    columns = _numbered(texts)
    count = len(columns[0])
    target = max(1, round(share * count))
    tied = None if groups is None else _group_numbers(groups)
    blocks, remark = _blocks(columns, tied), ""
    if len(columns) > 1 and _fitting(blocks, target) < 0.5:
        looser = _blocks([_equal_rows(columns)], tied)
        if _fitting(looser, target) > _fitting(blocks, target):
            blocks, remark = looser, _LOOSE
    choice = _Choice(blocks, _strata(labels, count, target), share=share, target=target, seed=seed)
    rows = np.flatnonzero(choice.make()[blocks])
    if not len(rows):
        raise TercetError(
            f"`dev` = {share:g}: no dev rows can be split off {count:,} rows: they are too few, or "
            "too many of them share a text or a group; name dev files instead."
        )
    return DevRows(rows, remark)


def fold_numbers(
    texts: Sequence[Sequence[str]],
    labels: Labels | None,
    *,
    folds: int,
    groups: Sequence[str | None] | None = None,
    seed: int = SEED,
) -> Rows:
    """The fold of each of n rows, int64 [n] from 0, for cross-validation.

    Blocks and strata are those of `choose_dev`; blocks are dealt out so that all folds have about
    the same rows of each stratum.
    """
    columns = _numbered(texts)
    count = len(columns[0])
    tied = None if groups is None else _group_numbers(groups)
    blocks = _blocks(columns, tied)
    if len(columns) > 1 and _fitting(blocks, count // folds) < 0.5:
        blocks = _blocks([_equal_rows(columns)], tied)
    strata = _strata(labels, count, max(1, count // folds))
    members = np.zeros((int(blocks.max()) + 1, int(strata.max()) + 1), np.int64)
    np.add.at(members, (blocks, strata), 1)
    rank = np.random.default_rng(seed).permutation(len(members))
    # Large blocks and rare strata first, while folds can still be evened out.
    rarity = (members / members.sum(axis=0)).max(axis=1)
    held = np.zeros((folds, members.shape[1]), np.int64)
    chosen = np.zeros(len(members), np.int64)
    for block in np.lexsort((rank, -rarity, -members.sum(axis=1))).tolist():
        own = members[block] > 0
        fullness = held[:, own].sum(axis=1) * (count + 1) + held.sum(axis=1)
        chosen[block] = int(fullness.argmin())
        held[chosen[block]] += members[block]
    folded: Rows = chosen[blocks]
    return folded


def _numbered(texts: Sequence[Sequence[str]]) -> list[Rows]:
    """For each column the numbers [n] of its texts; equal texts have the same number."""
    known: dict[str, int] = {}

    def number(text: str) -> int:
        return known.setdefault(" ".join(text.casefold().split()), len(known))

    return [np.fromiter(map(number, column), np.int64, len(column)) for column in texts]


def _group_numbers(groups: Sequence[str | None]) -> Rows:
    """The number of each row's group [n]; rows without a group have numbers of their own."""
    known: dict[str | int, int] = {}
    keys = (row if group is None else group for row, group in enumerate(groups))
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(groups))


def _equal_rows(columns: Sequence[Rows]) -> Rows:
    """Numbers [n] that are equal for rows of equal texts, in any order."""
    ordered = np.sort(np.stack(columns, axis=1), axis=1)
    return _compact(ordered)


def _blocks(columns: Sequence[Rows], groups: Rows | None) -> Rows:
    """The number of each row's block [n]: rows connected by texts and groups."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    keys = list(columns)
    if groups is not None:
        keys.append(groups + 1 + max(int(column.max()) for column in columns))
    count = len(keys[0])
    ends = count + np.concatenate(keys)
    nodes = int(ends.max()) + 1
    starts = np.tile(np.arange(count), len(keys))
    edges = coo_array((np.ones(len(ends), np.int8), (starts, ends)), shape=(nodes, nodes))
    components = connected_components(edges, directed=False)[1][:count]
    return _compact(components)


def _compact(keys: NDArray[Any]) -> Rows:
    """Numbers from 0 [n], equal where keys [n] or [n, columns] are."""
    axis = 0 if keys.ndim > 1 else None  # much faster without an axis
    numbers: Rows = np.unique(keys, axis=axis, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def _fitting(blocks: Rows, target: int) -> float:
    """The share of the rows whose blocks are not larger than dev."""
    sizes = np.bincount(blocks)
    return float(sizes[sizes <= target].sum() / len(blocks))


def _strata(labels: Labels | None, count: int, target: int) -> Rows:
    """The number of each row's stratum [n]."""
    if labels is None:
        return np.zeros(count, np.int64)
    keys: NDArray[Any] = np.asarray(labels)
    if keys.ndim == 2:
        counts = np.where(keys > 0, keys.sum(axis=0), count + 1)
        keys = np.where(keys.any(axis=1), counts.argmin(axis=1), keys.shape[1])
    elif np.issubdtype(keys.dtype, np.floating):
        places = np.linspace(0.0, 1.0, min(BINS, target) + 1)[1:-1]
        keys = np.searchsorted(np.unique(np.quantile(keys, places)), keys, side="right")
    return _compact(keys)


class _Choice:
    """Which blocks become dev."""

    def __init__(self, blocks: Rows, strata: Rows, *, share: float, target: int, seed: int) -> None:
        self.sizes = np.bincount(blocks)
        self.rows = np.bincount(strata)
        self.share, self.target = share, target
        # How many rows of each stratum a block has; pairs are sorted by block.
        pairs, self.counts = np.unique(blocks * len(self.rows) + strata, return_counts=True)
        self.owners, self.kinds = np.divmod(pairs, len(self.rows))
        self.rank = np.random.default_rng(seed).permutation(len(self.sizes))
        self.rarest_first = np.argsort(self.rows, kind="stable")
        self.chosen: Flags = np.zeros(len(self.sizes), np.bool_)
        self.reserved = self._reserve()

    def make(self) -> Flags:
        """Whether each block is dev."""
        self._represent()
        small = max(1, self.target // PARTS)
        for kind in self.rarest_first.tolist():
            gap = self.share * self.rows[kind] - self._rows_in_dev(kind) + 0.5
            self._fill(*self._of_kind(kind), gap=gap, largest=small)
        every = np.argsort(self.rank)
        for largest in (small, self.target):
            self._fill(every, self.sizes[every], gap=self.target, largest=largest)
        self._add_nearest()
        return self.chosen

    @property
    def room(self) -> int:
        return self.target - int(self.sizes[self.chosen].sum())

    def _rows_in_dev(self, kind: int) -> int:
        return int(self.counts[(self.kinds == kind) & self.chosen[self.owners]].sum())

    def _reserve(self) -> Flags:
        """For training: of each stratum one block, the one with most of its rows."""
        reserved: Flags = np.zeros(len(self.sizes), np.bool_)
        for kind in self.rarest_first.tolist():
            own = np.flatnonzero(self.kinds == kind)
            owners = self.owners[own]
            if not reserved[owners].any():
                reserved[owners[np.lexsort((self.rank[owners], -self.counts[own]))[0]]] = True
        return reserved

    def _represent(self) -> None:
        """Give dev the smallest block of each stratum that has none, while it stays small."""
        for kind in self.rarest_first.tolist():
            owners = self.owners[self.kinds == kind]
            if self.chosen[owners].any():
                continue
            free = owners[~self.reserved[owners]]
            ordered = free[np.lexsort((self.rank[free], self.sizes[free]))]
            if len(ordered) and self.sizes[ordered[0]] <= self.room + self.target:
                self.chosen[ordered[0]] = True

    def _of_kind(self, kind: int) -> tuple[Rows, Rows]:
        """The blocks of a stratum in random order, and how many of its rows they have."""
        own = np.flatnonzero(self.kinds == kind)
        own = own[np.argsort(self.rank[self.owners[own]])]
        return self.owners[own], self.counts[own]

    def _fill(self, blocks: Rows, weights: Rows, *, gap: float, largest: int) -> None:
        """Add blocks in order while their weights fit into the gap and they fit into dev."""
        free = ~(self.chosen | self.reserved)[blocks] & (self.sizes[blocks] <= largest)
        blocks, weights = blocks[free], weights[free]
        while True:
            fitting = (weights <= gap) & (self.sizes[blocks] <= self.room)
            blocks, weights = blocks[fitting], weights[fitting]
            if not len(blocks):
                return
            within = np.cumsum(weights) <= gap
            within &= np.cumsum(self.sizes[blocks]) <= self.room
            self.chosen[blocks[within]] = True
            gap -= float(weights[within].sum())
            blocks, weights = blocks[~within], weights[~within]

    def _add_nearest(self) -> None:
        """Where all blocks are large: add the smallest while that brings dev nearer to its size."""
        free = np.flatnonzero(~(self.chosen | self.reserved))
        for block in free[np.lexsort((self.rank[free], self.sizes[free]))].tolist():
            if self.sizes[block] >= 2 * self.room:
                return
            self.chosen[block] = True
