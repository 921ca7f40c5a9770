"""Linear layers on one vector, of a sentence or of a pair encoded jointly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from tercet.heads import onnx
from tercet.heads.activations import activation_of
from tercet.heads.shared import SharedForward, SharedGraph, identity

if TYPE_CHECKING:
    from tercet.nn.onnx.graph import Graph


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
        self.activation_name = activation
        self.activation = activation_of(activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, shared: SharedForward = identity) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        vectors = shared(vectors)
        for index, layer in enumerate(self.layers):
            if index > 0:
                vectors = self.activation(vectors)
            vectors = layer(self.dropout(vectors))
        return vectors

    def to_onnx(self, graph: Graph, vectors: str, *, shared: SharedGraph = identity) -> str:
        vectors = shared(vectors)
        for index, layer in enumerate(self.layers):
            if index > 0:
                vectors = graph.activation(self.activation_name, vectors)
            vectors = onnx.linear(graph, layer, vectors)
        return vectors
