"""The hinge loss: a pair graded above the middle should score high, one below it low."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.errors import TercetError
from tercet.objectives.base import Range
from tercet.objectives.grades import OneOutput


class Hinge(OneOutput):
    """One output per row, a cosine; grades above the middle of `label_range` count as +1, others
    as -1."""

    def __init__(
        self, *, classes: int | None = None, label_range: Range | None, margin: float = 1.0
    ) -> None:
        if label_range is None:
            raise TercetError("objective `hinge` needs `range`, the lowest and highest label")
        self._middle = sum(label_range) / 2.0
        self._margin = margin

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] on their own range -> scalar"""
        sides = 2.0 * (labels > self._middle).float() - 1.0
        return functional.relu(self._margin - sides * raw.float().squeeze(-1)).sum() / total
