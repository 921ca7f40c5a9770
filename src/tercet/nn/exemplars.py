"""Heads that compare a sentence with labelled ones whose vectors they keep."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.nn.cosine import cosine_matrix

_EMPTY = -1.0
# A training sentence is its own nearest: what is as near as this is taken for itself.
_ITSELF = 1.0 - 1e-4
_FIRST_SCALE = 20.0


class Exemplars(nn.Module):
    """Vectors [count, width] and labels [count] of sentences; places may stay empty.

    Both are kept as buffers, so that they are saved with the head that they belong to.
    """

    vectors: Tensor
    labels: Tensor

    def __init__(self, *, count: int, width: int) -> None:
        super().__init__()
        self.register_buffer("vectors", torch.zeros(count, width))
        self.register_buffer("labels", torch.full((count,), _EMPTY))

    def __len__(self) -> int:
        return len(self.labels)

    def fill(self, vectors: Tensor, labels: Tensor) -> None:
        """Keep vectors [n, width] and labels [n]; n is at most the number of places."""
        if len(labels) > len(self):
            raise TercetError(f"{len(labels)} exemplars do not fit into {len(self)} places")
        self.vectors.zero_()[: len(vectors)] = vectors
        self.labels.fill_(_EMPTY)[: len(labels)] = labels

    def cosines(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> fp32 [n, count]; 0 at places that are empty"""
        return cosine_matrix(vectors, self.vectors)


class ExemplarHead(nn.Module):
    """One linear layer on the cosines to the exemplars and on their labels."""

    def __init__(self, *, width: int, outputs: int, count: int) -> None:
        super().__init__()
        self.exemplars = Exemplars(count=count, width=width)
        self.final = nn.Linear(2 * count, outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        labels = self.exemplars.labels.clamp(min=0.0).expand(len(vectors), -1)
        raw: Tensor = self.final(torch.cat([self.exemplars.cosines(vectors), labels], dim=1))
        return raw


class NearestHead(nn.Module):
    """The cosine to the nearest exemplar of each class: the greatest names the nearest's label.

    All that it learns is how sure a difference of cosines makes it.
    """

    def __init__(self, *, width: int, outputs: int, count: int) -> None:
        super().__init__()
        self.exemplars = Exemplars(count=count, width=width)
        self._outputs = outputs
        self.scale = nn.Parameter(torch.tensor(_FIRST_SCALE))

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        cosines = self.exemplars.cosines(vectors)
        if self.training:
            cosines = cosines.masked_fill(cosines > _ITSELF, -1.0)
        nearest = [
            cosines.masked_fill(self.exemplars.labels != label, -1.0).amax(dim=1)
            for label in range(self._outputs)
        ]
        return self.scale * torch.stack(nearest, dim=1)
