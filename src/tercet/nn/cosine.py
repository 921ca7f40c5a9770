"""Cosines in fp32 with finite gradients, for zero vectors too."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SHORTEST = 1e-12


def unit(vectors: Tensor) -> Tensor:
    """Vectors [..., width] at length 1, in fp32; a zero vector stays zero and gets no gradient."""
    vectors = vectors.float()
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    # Dividing by infinity, not by a small number: a small one would make a huge gradient.
    return vectors / norms.masked_fill(norms <= _SHORTEST, math.inf)


def cosine(u: Tensor, v: Tensor) -> Tensor:
    """Cosine of each row of u [n, width] with the same row of v [n, width]: fp32 [n]."""
    return (unit(u) * unit(v)).sum(dim=-1)


def cosine_matrix(u: Tensor, v: Tensor) -> Tensor:
    """Cosine of every row of u [n, width] with every row of v [m, width]: fp32 [n, m]."""
    # bf16 keeps 8 bits, too few for a cosine that a temperature of 0.05 then multiplies by 20.
    with torch.autocast(u.device.type, enabled=False):
        return unit(u) @ unit(v).T
