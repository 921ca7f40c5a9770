"""What heads have in common as ONNX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from tercet.nn.onnx.graph import Graph as Graph


def linear(graph: Graph, layer: nn.Module, vectors: str) -> str:
    """A linear layer of a head on vectors [rows, inputs]."""
    assert isinstance(layer, nn.Linear)
    weight, bias = (part.detach().float().cpu().numpy() for part in (layer.weight, layer.bias))
    return graph.linear(weight, bias, vectors)


def dot(graph: Graph, u: str, v: str) -> str:
    """The inner product of each row of u with the same row of v, [rows, 1]."""
    return graph.add("ReduceSum", graph.add("Mul", u, v), graph.integers(1), keepdims=1)


def cosine(graph: Graph, u: str, v: str) -> str:
    """The cosine of each row of u with the same row of v, [rows, 1]."""
    return dot(graph, graph.unit(u), graph.unit(v))
