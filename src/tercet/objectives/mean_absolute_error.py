"""Absolute distance of a head's number, a logit or a cosine, from the grade."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.objectives.grades import DistanceObjective


class MeanAbsoluteError(DistanceObjective):
    def sum_of_distances(self, values: Tensor, targets: Tensor) -> Tensor:
        return functional.l1_loss(values, targets, reduction="sum")
