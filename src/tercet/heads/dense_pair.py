"""A pair encoded jointly in both orders."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tercet.heads import onnx
from tercet.heads.shared import ACTIVATIONS, SharedForward, SharedGraph, identity


class DensePairHead(nn.Module):
    """One linear layer for each order, optionally one for their difference, and a final one on
    the results."""

    def __init__(
        self,
        *,
        width: int,
        outputs: int,
        difference: bool = True,
        activation: str | None = None,
        dropout: float = 0.1,
        shared: int | None = None,
    ) -> None:
        super().__init__()
        self.difference = difference
        branches = 3 if difference else 2
        self.branches = nn.ModuleList(nn.Linear(shared or width, outputs) for _ in range(branches))
        self.final = nn.Linear(branches * outputs, outputs)
        # It starts as a plain sum: at a fine-tuning rate so few weights hardly move, and a random
        # start can put the labels out of reach.
        with torch.no_grad():
            self.final.weight.copy_(torch.eye(outputs).repeat(1, branches))
            self.final.bias.zero_()
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, ab: Tensor, ba: Tensor, shared: SharedForward = identity) -> Tensor:
        """ab, ba [n, width], of each pair in its two orders -> [n, outputs]"""
        ab, ba = shared(ab), shared(ba)
        inputs = [ab, ba, ab - ba] if self.difference else [ab, ba]
        branches = zip(self.branches, inputs, strict=True)
        results = [layer(self.dropout(part)) for layer, part in branches]
        joined = torch.cat(results, dim=-1)
        if self.activation is not None:
            joined = ACTIVATIONS[self.activation](joined)
        outputs: Tensor = self.final(joined)
        return outputs

    def to_onnx(
        self, graph: onnx.Graph, ab: str, ba: str, *, shared: SharedGraph = identity
    ) -> str:
        ab, ba = shared(ab), shared(ba)
        inputs = [ab, ba] + ([graph.add("Sub", ab, ba)] if self.difference else [])
        branches = zip(self.branches, inputs, strict=True)
        results = [onnx.linear(graph, layer, part) for layer, part in branches]
        joined = graph.add("Concat", *results, axis=1)
        if self.activation is not None:
            joined = graph.activation(self.activation, joined)
        return onnx.linear(graph, self.final, joined)
