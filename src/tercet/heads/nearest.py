"""The cosine to the nearest exemplar of each class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tercet.heads import onnx
from tercet.heads.exemplars import StoresExemplars

# A training sentence is its own nearest: an exemplar this near is taken for the sentence itself.
_ITSELF = 1.0 - 1e-4
_FIRST_SCALE = 20.0


class NearestHead(StoresExemplars):
    """The highest cosine names the nearest exemplar's label.

    It learns only how confident a difference of cosines makes it.
    """

    def __init__(self, *, width: int, outputs: int, count: int) -> None:
        super().__init__(width=width, count=count)
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

    def to_onnx(self, graph: onnx.Graph, vectors: str) -> str:
        cosines = self.exemplars.cosines_to_onnx(graph, vectors)
        labels = self.exemplars.labels.cpu().numpy()
        nearest = []
        for label in range(self._outputs):
            others = graph.constant(labels != label)
            own = graph.add("Where", others, graph.number(-1.0), cosines)
            nearest.append(graph.add("ReduceMax", own, graph.integers(1), keepdims=1))
        scale = graph.number(float(self.scale.detach()))
        return graph.add("Mul", graph.add("Concat", *nearest, axis=1), scale)
