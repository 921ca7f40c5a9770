"""Linear layers on one vector, of a sentence or of a pair encoded jointly."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from tercet.heads import onnx
from tercet.heads.shared import ACTIVATIONS, SharedForward, SharedGraph, identity


class MlpHead(nn.Module):
    def __init__(
        self,
        *,
        width: int,
        outputs: int,
        hidden: Sequence[int] = (),
        activation: str = "relu",
        dropout: float = 0.1,
        shared: int | None = None,
    ) -> None:
        """shared: the width that shared layers give, where some come before this head's own"""
        super().__init__()
        widths = [shared or width, *hidden, outputs]
        self.layers = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, shared: SharedForward = identity) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        vectors = shared(vectors)
        for index, layer in enumerate(self.layers):
            if index > 0:
                vectors = ACTIVATIONS[self.activation](vectors)
            vectors = layer(self.dropout(vectors))
        return vectors

    def to_onnx(self, graph: onnx.Graph, vectors: str, *, shared: SharedGraph = identity) -> str:
        vectors = shared(vectors)
        for index, layer in enumerate(self.layers):
            if index > 0:
                vectors = graph.activation(self.activation, vectors)
            vectors = onnx.linear(graph, layer, vectors)
        return vectors
