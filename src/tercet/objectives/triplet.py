"""The triplet loss of SBERT (Reimers and Gurevych, 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from tercet.nn.cosine import cosine
from tercet.objectives.base import Columns, ContrastiveObjective, check_columns


def _euclidean(u: Tensor, v: Tensor) -> Tensor:
    # vector_norm has gradient 0 at 0, where the square root of a sum has none.
    lengths: Tensor = torch.linalg.vector_norm(u.float() - v.float(), dim=-1)
    return lengths


def _cosine(u: Tensor, v: Tensor) -> Tensor:
    return 1.0 - cosine(u, v)


_DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "euclidean": _euclidean,
    "cosine": _cosine,
}


class Triplet(ContrastiveObjective):
    """The positive must lie nearer to the anchor than the negative does, by a margin."""

    def __init__(
        self, *, margin: float = 1.0, distance: Literal["euclidean", "cosine"] = "euclidean"
    ) -> None:
        self._margin = margin
        self._distance = _DISTANCES[distance]

    def loss(self, columns: Columns, *, candidates: Columns, first: int, total: int) -> Tensor:
        """columns: (anchors, positives, negatives), each [n, width]; no row reads another's"""
        check_columns(columns, objective="triplet", allowed=(3,))
        anchors, positives, negatives = columns
        near, far = self._distance(anchors, positives), self._distance(anchors, negatives)
        return functional.relu(near - far + self._margin).sum() / total
