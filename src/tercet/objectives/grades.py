"""Grades, between the task's own range and the one that a head is trained on."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor
from torch.nn import functional

from tercet.errors import TercetError
from tercet.objectives.base import Range


class Grades:
    """Scales grades from `label_range` onto `targets` and back; unscaled where targets is None."""

    def __init__(self, *, label_range: Range | None, targets: Range | None) -> None:
        if targets is not None and label_range is None:
            raise TercetError("`targets` needs the task's `range`, the lowest and highest label")
        for key, limits in (("range", label_range), ("targets", targets)):
            if limits is not None and not limits[0] < limits[1]:
                raise TercetError(f"`{key}` {list(limits)} must go from low to high")
        self._range = label_range
        self._slope, self._shift = 1.0, 0.0
        if targets is not None and label_range is not None:
            self._slope = (targets[1] - targets[0]) / (label_range[1] - label_range[0])
            self._shift = targets[0] - self._slope * label_range[0]

    def to_targets(self, labels: Tensor) -> Tensor:
        """labels [n] -> fp32 [n], on the range that the head is trained on"""
        return labels.float() * self._slope + self._shift

    def to_labels(self, values: Tensor) -> Tensor:
        """values [n] -> fp32 [n], on the task's own range and never outside it"""
        grades = (values.float() - self._shift) / self._slope
        return grades if self._range is None else grades.clamp(*self._range)


class OneNumber(ABC):
    """One number a row, for a grade; a teacher's grade is a label like any other."""

    outputs = 1

    @abstractmethod
    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] on their own range -> scalar"""

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """raw [n, 1], targets [n, 1]: grades, which have no temperature -> scalar"""
        return self.loss(raw, targets.squeeze(-1), total=total)

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """first, second [n, 1] -> scalar: their squared distance"""
        return functional.mse_loss(first.float(), second.float(), reduction="sum") / total


class GradedObjective(OneNumber):
    """One number a row; labels are grades, scaled from `label_range` onto `targets`."""

    def __init__(
        self,
        *,
        classes: int | None = None,
        label_range: Range | None = None,
        targets: Range | None = None,
    ) -> None:
        self._grades = Grades(label_range=label_range, targets=targets)

    @abstractmethod
    def sum_of_distances(self, values: Tensor, targets: Tensor) -> Tensor:
        """How far values [n] are from targets [n], over all rows -> scalar"""

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] on their own range -> scalar"""
        targets = self._grades.to_targets(labels)
        return self.sum_of_distances(raw.float().squeeze(-1), targets) / total

    def predict(self, raw: Tensor) -> Tensor:
        """raw [n, 1] -> grades on the label's own range, clipped to it [n]"""
        return self._grades.to_labels(raw.squeeze(-1))
