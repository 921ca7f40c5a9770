"""Groups of texts that known duplicates connect: if a = b and b = c, then a = c."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


class Components:
    """The connected components of pairs of texts, by 64-bit hashes; 12 bytes per text."""

    def __init__(self, first: Hashes, second: Hashes) -> None:
        """first, second: uint64 [pairs], the two texts of each pair"""
        from scipy.sparse import coo_matrix  # takes half a second
        from scipy.sparse.csgraph import connected_components

        self.texts, nodes = np.unique(np.concatenate([first, second]), return_inverse=True)
        pairs = len(first)
        edges = (np.ones(pairs, np.int8), (nodes[:pairs], nodes[pairs:]))
        graph = coo_matrix(edges, shape=(len(self.texts), len(self.texts)))
        _, numbers = connected_components(graph, directed=False)
        self.numbers: NDArray[np.int32] = numbers.astype(np.int32)

    def of(self, texts: Hashes) -> NDArray[np.int32]:
        """The component of each text [n], or -1 where it is not in a pair."""
        if not len(self.texts):
            return np.full(len(texts), -1, np.int32)
        places = np.searchsorted(self.texts, texts).clip(max=len(self.texts) - 1)
        return np.where(self.texts[places] == texts, self.numbers[places], np.int32(-1))

    def connect(self, first: Hashes, second: Hashes) -> NDArray[np.bool_]:
        """Whether the two texts of each pair [n] are in one component."""
        ours, theirs = self.of(first), self.of(second)
        connected: NDArray[np.bool_] = (ours == theirs) & (ours >= 0)
        return connected
