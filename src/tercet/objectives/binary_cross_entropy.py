"""Cross-entropy of one logit: is it class 1 or class 0?"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import PredictiveObjective
from tercet.objectives.soft import divergence, symmetric_divergence, two_classes


class BinaryCrossEntropy(PredictiveObjective):
    """Sigmoid of one output per row; labels are 0 and 1."""

    def __init__(self, *, classes: int = 2, label_range: None = None) -> None:
        """There is nothing to choose."""

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] -> scalar"""
        summed = functional.binary_cross_entropy_with_logits(
            raw.float().squeeze(-1), labels.float(), reduction="sum"
        )
        return summed / total

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """raw [n, 1], targets [n, 2] -> scalar"""
        return divergence(two_classes(raw), targets, temperature=temperature) / total

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """first, second [n, 1] -> scalar"""
        return symmetric_divergence(two_classes(first), two_classes(second)) / total
