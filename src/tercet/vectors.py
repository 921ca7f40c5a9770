"""Vectors in numpy; `tercet.nn.cosine` has the same for tensors that need gradients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHORTEST = np.float32(1e-12)
"""Vectors that are shorter are left as they are."""


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors [n, width] at length 1, float32; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, SHORTEST)
    return scaled
