"""Layers that several heads share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.heads import onnx

T = TypeVar("T")
SharedForward = Callable[[Tensor], Tensor]
"""Shared layers: what a head reads [n, width] to what its own layers read."""
SharedGraph = Callable[[str], str]
"""The same in an ONNX graph, from value to value."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
}


def identity(value: T) -> T:
    """In place of shared layers where there are none."""
    return value


class SharedLayers(nn.Module):
    """Dropout, a linear layer and an activation, repeated."""

    def __init__(
        self, *, width: int, hidden: Sequence[int], activation: str, dropout: float
    ) -> None:
        super().__init__()
        widths = [width, *hidden]
        self.width = width
        self.layers = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> [n, hidden[-1]]"""
        for layer in self.layers:
            vectors = ACTIVATIONS[self.activation](layer(self.dropout(vectors)))
        return vectors

    def to_onnx(self, graph: onnx.Graph, vectors: str) -> str:
        for layer in self.layers:
            vectors = graph.activation(self.activation, onnx.linear(graph, layer, vectors))
        return vectors
