"""Linear layers on one vector, of a sentence or of a pair encoded jointly."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from tercet.heads import onnx
from tercet.heads.shared import ACTIVATIONS, SharedForward, SharedGraph, identity
from tercet.nn.cosine import unit


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
        normalise: bool = False,
    ) -> None:
        """shared: the width that shared layers give, where some come before this head's own
        normalise: vectors are scaled to length 1 first
        """
        super().__init__()
        self.normalise = normalise
        widths = [shared or width, *hidden, outputs]
        self.layers = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor, shared: SharedForward = identity) -> Tensor:
        """vectors [n, width] -> [n, outputs]"""
        outputs: Tensor = self.last(self.dropout(self.inputs(vectors, shared=shared)))
        return outputs

    @property
    def last(self) -> nn.Linear:
        """The layer that gives the outputs."""
        layer = self.layers[-1]
        assert isinstance(layer, nn.Linear)
        return layer

    @property
    def blocks(self) -> list[int]:
        """The widths of the parts of what the last layer reads."""
        return [self.last.in_features]

    def inputs(self, vectors: Tensor, *, shared: SharedForward = identity) -> Tensor:
        """What the last layer reads: vectors [n, width] -> [n, k]"""
        vectors = shared(unit(vectors).to(vectors.dtype) if self.normalise else vectors)
        for layer in self.layers[:-1]:
            vectors = ACTIVATIONS[self.activation](layer(self.dropout(vectors)))
        return vectors

    def to_onnx(self, graph: onnx.Graph, vectors: str, *, shared: SharedGraph = identity) -> str:
        vectors = shared(graph.unit(vectors) if self.normalise else vectors)
        for index, layer in enumerate(self.layers):
            if index > 0:
                vectors = graph.activation(self.activation, vectors)
            vectors = onnx.linear(graph, layer, vectors)
        return vectors
