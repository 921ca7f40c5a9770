"""Heads that compare a sentence with labelled training sentences whose vectors they store."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.heads import onnx
from tercet.nn.cosine import cosine_matrix, unit

_EMPTY = -1.0


class Exemplars(nn.Module):
    """Vectors [count, width] and labels [count] of sentences; places may stay empty.

    Both are buffers, so that they are saved with their head.
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
        """Store vectors [n, width] and labels [n]; n is at most the number of places."""
        if len(labels) > len(self):
            raise TercetError(f"{len(labels)} exemplars do not fit into {len(self)} places")
        self.vectors.zero_()[: len(vectors)] = vectors
        self.labels.fill_(_EMPTY)[: len(labels)] = labels

    def cosines(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> fp32 [n, count]; 0 at empty places"""
        return cosine_matrix(vectors, self.vectors)

    def cosines_to_onnx(self, graph: onnx.Graph, vectors: str) -> str:
        stored = unit(self.vectors).cpu().numpy()
        return graph.add("MatMul", graph.unit(vectors), graph.constant(stored.T))


class StoresExemplars(nn.Module):
    """A head with exemplars, which a stage fills when it starts."""

    balanced = False
    """Whether every class gets the same number of exemplars."""

    def __init__(self, *, width: int, count: int) -> None:
        super().__init__()
        self.exemplars = Exemplars(count=count, width=width)


class ExemplarHead(StoresExemplars):
    """One linear layer on the cosines to the exemplars and on their labels."""

    balanced = True

    def __init__(self, *, width: int, outputs: int, count: int) -> None:
        super().__init__(width=width, count=count)
        self.final = nn.Linear(2 * count, outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        labels = self.exemplars.labels.clamp(min=0.0).expand(len(vectors), -1)
        outputs: Tensor = self.final(torch.cat([self.exemplars.cosines(vectors), labels], dim=1))
        return outputs

    def to_onnx(self, graph: onnx.Graph, vectors: str) -> str:
        # The labels are the same for all rows: their part is added to the bias.
        weight, bias = (part.detach().float().cpu().numpy() for part in self.final.parameters())
        labels = self.exemplars.labels.clamp(min=0.0).cpu().numpy()
        count = len(labels)
        constants = [weight[:, :count].T, bias + weight[:, count:] @ labels]
        cosines = self.exemplars.cosines_to_onnx(graph, vectors)
        return graph.add("Gemm", cosines, *map(graph.constant, constants))
