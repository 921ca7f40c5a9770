"""Cross-entropy of one logit: is it class 1 or class 0?"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from tercet.errors import TercetError
from tercet.objectives.base import Range


class BinaryCrossEntropy:
    """One number a row, sigmoid; labels are 0 and 1."""

    outputs = 1

    def __init__(self, *, classes: int | None = 2, label_range: Range | None = None) -> None:
        if classes != 2:
            raise TercetError(
                f"objective `binary-cross-entropy` needs exactly two classes, not {classes}"
            )

    def loss(self, raw: Tensor, labels: Tensor, *, total: int) -> Tensor:
        """raw [n, 1], labels [n] -> scalar"""
        summed = functional.binary_cross_entropy_with_logits(
            raw.float().squeeze(-1), labels.float(), reduction="sum"
        )
        return summed / total

    def predict(self, raw: Tensor) -> Tensor:
        """raw [n, 1] -> probability of class 1 [n]"""
        return raw.float().squeeze(-1).sigmoid()
