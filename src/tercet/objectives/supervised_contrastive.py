"""Supervised contrastive learning (Khosla et al., 2020): classes as clusters of vectors."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tercet.nn.cosine import cosine_matrix
from tercet.objectives.base import LabelContrastiveObjective


class SupervisedContrastive(LabelContrastiveObjective):
    """Compares every sentence with all others of the batch.

    form: `softmax`, the loss of the paper, or `squared`, the squared distance of cosines from 1
        within a class and from 0 between classes, both sides weighted equally
    temperature: of the softmax
    """

    def __init__(
        self, *, form: Literal["softmax", "squared"] = "softmax", temperature: float = 0.1
    ) -> None:
        self._form = form
        self._temperature = temperature

    def loss(
        self,
        vectors: Tensor,
        labels: Tensor,
        *,
        candidates: Tensor,
        candidate_labels: Tensor,
        first: int,
        total: int,
    ) -> Tensor:
        cosines = cosine_matrix(vectors, candidates)
        own = torch.arange(first, first + len(vectors), device=vectors.device)
        other = torch.ones_like(cosines).scatter_(1, own[:, None], 0.0)
        alike = (labels[:, None] == candidate_labels[None, :]).to(cosines.dtype) * other
        if self._form == "squared":
            apart = other - alike
            drawn = _mean((1.0 - cosines).square(), alike) + _mean(cosines.square(), apart)
            return drawn.sum() / total
        scores = cosines / self._temperature
        scores = scores.masked_fill(other == 0.0, torch.finfo(scores.dtype).min)
        likely = scores - scores.logsumexp(dim=1, keepdim=True)
        return -_mean(likely * other, alike).sum() / total


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the chosen values of each row, 0 where none is: [n, m], 0 and 1 [n, m] -> [n]"""
    return (values * chosen).sum(dim=1) / chosen.sum(dim=1).clamp(min=1.0)
