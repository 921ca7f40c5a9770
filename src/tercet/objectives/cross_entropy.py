"""Cross-entropy over classes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import Range, WeightedObjective
from tercet.objectives.soft import divergence, symmetric_divergence


class CrossEntropy(WeightedObjective):
    """Softmax over one output per class; labels are class numbers from 0.

    label_smoothing: how much of a label is spread evenly over all classes
    ordinal: spreads it over neighbours instead, by softmax(-ordinal * squared distance), as in
        soft ordinal vectors (Diaz and Marathe, 2019)
    """

    def __init__(
        self,
        *,
        classes: int,
        label_range: Range | None = None,
        label_smoothing: float = 0.0,
        ordinal: float | None = None,
    ) -> None:
        self._classes = classes
        self._label_smoothing = label_smoothing
        self._ordinal = ordinal

    def loss(
        self, raw: Tensor, labels: Tensor, *, total: int, weights: Tensor | None = None
    ) -> Tensor:
        """raw [n, classes], labels [n], weights [classes] -> scalar"""
        targets = labels if self._ordinal is None else self._spread(labels, self._ordinal)
        summed = functional.cross_entropy(
            raw.float(),
            targets,
            weight=weights,
            reduction="sum",
            label_smoothing=self._label_smoothing,
        )
        return summed / total

    def _spread(self, labels: Tensor, ordinal: float) -> Tensor:
        """labels [n] -> probabilities [n, classes]"""
        places = torch.arange(self._classes, device=labels.device)
        return (-ordinal * (places - labels[:, None]).square().float()).softmax(dim=-1)

    def teacher_loss(
        self, raw: Tensor, targets: Tensor, *, temperature: float, total: int
    ) -> Tensor:
        """raw, targets [n, classes] -> scalar"""
        return divergence(raw, targets, temperature=temperature) / total

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """first, second [n, classes] -> scalar"""
        return symmetric_divergence(first, second) / total
