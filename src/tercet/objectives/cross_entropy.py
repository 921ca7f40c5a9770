"""Cross-entropy over classes."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.errors import TercetError
from tercet.objectives.base import Range


class CrossEntropy:
    """One number a class, softmax; labels are class numbers from 0."""

    def __init__(
        self,
        *,
        classes: int | None,
        label_range: Range | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        if classes is None or classes < 2:
            raise TercetError(f"objective `cross-entropy` needs two or more classes, not {classes}")
        self.outputs = classes
        self._label_smoothing = label_smoothing

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, classes], labels [n] -> scalar"""
        summed = functional.cross_entropy(
            raw.float(), labels, reduction="sum", label_smoothing=self._label_smoothing
        )
        return summed / total

    def predict(self, raw: Tensor) -> Tensor:
        """raw [n, classes] -> probabilities [n, classes]"""
        return raw.float().softmax(dim=-1)
