"""Multiple-negatives ranking (Henderson et al., 2017), on scaled cosines as in SBERT."""

from __future__ import annotations

from torch import Tensor

from tercet.objectives.base import Columns, ContrastiveObjective, check_columns
from tercet.objectives.in_batch import in_batch_cross_entropy


class MultipleNegativesRanking(ContrastiveObjective):
    """Each anchor must rank its own positive above all others of the batch and hard negatives."""

    def __init__(self, *, scale: float = 20.0) -> None:
        self._scale = scale

    def loss(self, columns: Columns, *, candidates: Columns, first: int, total: int) -> Tensor:
        """columns: (anchors, positives) or (anchors, positives, negatives), each [n, width]"""
        check_columns(columns, objective="multiple-negatives-ranking", allowed=(2, 3))
        return (
            in_batch_cross_entropy(columns[0], candidates, first=first, scale=self._scale) / total
        )
