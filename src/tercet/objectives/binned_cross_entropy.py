"""Cross-entropy on grades that are sorted into bins."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.objectives.base import Range
from tercet.objectives.grades import GradedObjective
from tercet.objectives.soft import symmetric_divergence


class BinnedCrossEntropy(GradedObjective):
    """Softmax over one output per bin; bins are evenly spaced from the lowest to the highest
    grade, and a label belongs to the nearest."""

    def __init__(self, *, classes: None = None, label_range: Range, bins: int = 6) -> None:
        self._bins = bins
        self._low, self._high = label_range

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, bins], labels [n] on their own range -> scalar"""
        share = (labels.float() - self._low) / (self._high - self._low)
        bins = (share * (self._bins - 1)).round().long().clamp(0, self._bins - 1)
        return functional.cross_entropy(raw.float(), bins, reduction="sum") / total

    def disagreement(self, first: Tensor, second: Tensor, *, total: int) -> Tensor:
        """first, second [n, bins] -> scalar"""
        return symmetric_divergence(first, second) / total
