"""Absolute distance of a head's number, a logit or a cosine, from the grade."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import Range
from tercet.objectives.grades import Grades


class MeanAbsoluteError:
    """One number a row; labels are grades, scaled from `label_range` onto `targets`."""

    outputs = 1

    def __init__(
        self,
        *,
        classes: int | None = None,
        label_range: Range | None = None,
        targets: Range | None = None,
    ) -> None:
        self._grades = Grades(label_range=label_range, targets=targets)

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] on their own range -> scalar"""
        targets = self._grades.to_targets(labels)
        return functional.l1_loss(raw.float().squeeze(-1), targets, reduction="sum") / total

    def predict(self, raw: Tensor) -> Tensor:
        """raw [n, 1] -> grades on the label's own range, clipped to it [n]"""
        return self._grades.to_labels(raw.squeeze(-1))
