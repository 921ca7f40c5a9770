"""Grades, between the task's own range and the one that a head is trained on."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import PredictiveObjective, Range


class GradedObjective(PredictiveObjective):
    """Learns grades; a teacher's grade is a label like any other."""

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """raw [n, outputs], targets [n, 1]: grades, which have no temperature -> scalar"""
        return self.loss(raw, targets.squeeze(-1), total=total)

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """first, second [n, 1] -> scalar: their squared distance"""
        return functional.mse_loss(first.float(), second.float(), reduction="sum") / total


class DistanceObjective(GradedObjective):
    """Grades are scaled from `label_range` to `targets`; unscaled where targets is None."""

    def __init__(
        self,
        *,
        classes: None = None,
        label_range: Range | None = None,
        targets: Range | None = None,
    ) -> None:
        self._slope, self._shift = 1.0, 0.0
        if targets is not None and label_range is not None:
            self._slope = (targets[1] - targets[0]) / (label_range[1] - label_range[0])
            self._shift = targets[0] - self._slope * label_range[0]

    @abstractmethod
    def sum_of_distances(self, values: Tensor, targets: Tensor) -> Tensor:
        """The distances of values [n] from targets [n], summed -> scalar"""

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] on their own range -> scalar"""
        targets = labels.float() * self._slope + self._shift
        return self.sum_of_distances(raw.float().squeeze(-1), targets) / total
