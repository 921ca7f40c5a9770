"""Vectors kept close to those of a teacher of the same width."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from tercet.nn.cosine import cosine


class TeacherVectors:
    """The distance of each vector from the one that the teacher has for the same text."""

    def __init__(self, *, distance: Literal["cosine", "euclidean"] = "cosine") -> None:
        self._distance = distance

    def loss(self, vectors: Tensor, targets: Tensor, *, total: int) -> Tensor:
        """Sum of the texts' distances over `total`, in fp32; vectors, targets [n, width]"""
        if self._distance == "cosine":
            return (1.0 - cosine(vectors, targets)).sum() / total
        return (vectors.float() - targets.float()).square().mean(dim=-1).sum() / total
