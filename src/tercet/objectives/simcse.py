"""SimCSE (Gao, Yao and Chen, 2021), unsupervised and supervised."""

from __future__ import annotations

from torch import Tensor

from tercet.objectives.base import Columns, ContrastiveObjective, check_columns
from tercet.objectives.in_batch import in_batch_cross_entropy


class SimCSE(ContrastiveObjective):
    """Each anchor must find its own positive among those of the whole batch and hard negatives.

    Unsupervised, the two columns are one sentence under two draws of dropout.
    """

    def __init__(self, *, temperature: float = 0.05) -> None:
        self._temperature = temperature

    def loss(self, columns: Columns, *, candidates: Columns, first: int, total: int) -> Tensor:
        """columns: (anchors, positives) or (anchors, positives, negatives), each [n, width]"""
        check_columns(columns, objective="simcse", allowed=(2, 3))
        scale = 1.0 / self._temperature
        return in_batch_cross_entropy(columns[0], candidates, first=first, scale=scale) / total
