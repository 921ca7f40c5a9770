"""The hinge loss: a pair graded above the middle should score high, one below it low."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import Range
from tercet.objectives.grades import GradedObjective


class Hinge(GradedObjective):
    """One output per row, a cosine; grades above the middle of `label_range` count as +1, others
    as -1."""

    def __init__(self, *, classes: None = None, label_range: Range, margin: float = 1.0) -> None:
        self._middle = sum(label_range) / 2.0
        self._margin = margin

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] on their own range -> scalar"""
        sides = 2.0 * (labels > self._middle).float() - 1.0
        return functional.relu(self._margin - sides * raw.float().squeeze(-1)).sum() / total
