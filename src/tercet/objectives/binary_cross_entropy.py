"""Cross-entropy of logits: is it class 1 or class 0, and does a row have each of its labels?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import WeightedObjective
from tercet.objectives.soft import divergence, symmetric_divergence, two_classes


class BinaryCrossEntropy(WeightedObjective):
    """Sigmoid of each output: one output for two classes, or one for each of several labels.

    The loss of a row is the mean over its outputs, so that its size does not grow with the labels.
    """

    def __init__(self, *, classes: int = 2, label_range: None = None) -> None:
        """There is nothing to choose."""

    def loss(
        self, raw: Tensor, labels: Tensor, *, total: int, weights: Tensor | None = None
    ) -> Tensor:
        """raw [n, 1], labels [n] -> scalar; or raw [n, classes], labels [n, classes] of 0 and 1

        weights: of both classes [2], or of the rows that have a label [classes]
        """
        two = raw.shape[1] == 1
        summed = functional.binary_cross_entropy_with_logits(
            raw.float(),
            labels.view_as(raw).float(),
            weight=weights[labels].view_as(raw) if two and weights is not None else None,
            pos_weight=None if two else weights,
            reduction="sum",
        )
        return summed / (total * raw.shape[1])

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """raw [n, 1], targets [n, 2] -> scalar; or raw [n, classes], targets [n, classes]"""
        if raw.shape[1] > 1:
            targets = torch.stack([1.0 - targets, targets], dim=-1).view(-1, 2)
        summed = divergence(_each(raw), targets, temperature=temperature)
        return summed / (total * raw.shape[1])

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """first, second [n, 1] or [n, classes] -> scalar"""
        summed = symmetric_divergence(_each(first), _each(second))
        return summed / (total * first.shape[1])


def _each(raw: Tensor) -> Tensor:
    """The logits [n, outputs] as logits of class 0 and 1 [n * outputs, 2]."""
    return two_classes(raw.reshape(-1, 1))
