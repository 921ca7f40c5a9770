"""Groups of rows that are connected by pairs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Ints = NDArray[np.int64]


def group_rows(count: int, pairs: Iterable[tuple[Ints, Ints]]) -> Ints:
    """The group of each of `count` rows, numbered from 1 by first row; 0 for a row without pair.

    pairs: first and second rows, in chunks
    """
    labels = np.arange(count)
    for first, second in pairs:
        ones = np.ones(len(first), np.bool_)
        graph = coo_array((ones, (labels[first], labels[second])), shape=(count, count))
        labels = connected_components(graph, directed=False)[1].astype(np.int64)[labels]
    _, first_rows, places, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    several = np.flatnonzero(sizes > 1)
    numbers = np.zeros(len(sizes), np.int64)
    numbers[several[np.argsort(first_rows[several])]] = np.arange(1, len(several) + 1)
    groups: Ints = numbers[places]
    return groups
