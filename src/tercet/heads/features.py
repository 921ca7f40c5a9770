"""Linear layers on features of two vectors, concatenated in the given order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tercet.heads import onnx
from tercet.heads.mlp import MlpHead
from tercet.heads.shared import SharedForward, SharedGraph, identity
from tercet.nn.cosine import cosine, unit
from tercet.specs.heads import FeatureHeadSpec

FEATURES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "u": lambda u, v: u,
    "v": lambda u, v: v,
    "absdiff": lambda u, v: (u - v).abs(),
    "product": lambda u, v: u * v,
    "dot": lambda u, v: (u * v).sum(dim=-1, keepdim=True),
    "cosine": lambda u, v: cosine(u, v).unsqueeze(-1).to(u.dtype),
}
ONNX_FEATURES: dict[str, Callable[[onnx.Graph, str, str], str]] = {
    "u": lambda graph, u, v: u,
    "v": lambda graph, u, v: v,
    "absdiff": lambda graph, u, v: graph.add("Abs", graph.add("Sub", u, v)),
    "product": lambda graph, u, v: graph.add("Mul", u, v),
    "dot": lambda graph, u, v: onnx.dot(graph, u, v),
    "cosine": lambda graph, u, v: onnx.cosine(graph, u, v),
}


class FeatureHead(nn.Module):
    def __init__(
        self, *, width: int, features: Sequence[str], normalise: bool = False, **options: Any
    ) -> None:
        """options: those of `MlpHead`"""
        super().__init__()
        self.features = list(features)
        self.width = width
        self.normalise = normalise
        spec = FeatureHeadSpec.model_validate({"features": self.features})
        self.mlp = MlpHead(width=spec.input_width(width), **options)

    def forward(self, u: Tensor, v: Tensor, shared: SharedForward = identity) -> Tensor:
        """u [n, width], v [n, width] -> [n, outputs]"""
        outputs: Tensor = self.mlp(self._concatenated(u, v), shared)
        return outputs

    @property
    def last(self) -> nn.Linear:
        """The layer that gives the outputs."""
        return self.mlp.last

    @property
    def blocks(self) -> list[int]:
        """The widths of the parts of what the last layer reads."""
        if len(self.mlp.layers) > 1:
            return self.mlp.blocks
        spec = FeatureHeadSpec.model_validate
        return [spec({"features": [name]}).input_width(self.width) for name in self.features]

    def inputs(self, u: Tensor, v: Tensor) -> Tensor:
        """What the last layer reads: u [n, width], v [n, width] -> [n, k]"""
        return self.mlp.inputs(self._concatenated(u, v))

    def _concatenated(self, u: Tensor, v: Tensor) -> Tensor:
        if self.normalise:
            u, v = unit(u).to(u.dtype), unit(v).to(v.dtype)
        return torch.cat([FEATURES[name](u, v) for name in self.features], dim=-1)

    def to_onnx(self, graph: onnx.Graph, u: str, v: str, *, shared: SharedGraph = identity) -> str:
        if self.normalise:
            u, v = graph.unit(u), graph.unit(v)
        features = [ONNX_FEATURES[name](graph, u, v) for name in self.features]
        return self.mlp.to_onnx(graph, graph.add("Concat", *features, axis=1), shared=shared)
