"""Layers that several heads share."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from tercet.nn.activations import ACTIVATIONS


class SharedLayers(nn.Module):
    """Dropout, a linear layer and an activation, one after the other."""

    def __init__(
        self, *, width: int, hidden: Sequence[int], activation: str, dropout: float
    ) -> None:
        super().__init__()
        widths = [width, *hidden]
        self.width = width
        self.layers = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors [n, width] -> [n, hidden[-1]]"""
        for layer in self.layers:
            vectors = self.activation(layer(self.dropout(vectors)))
        return vectors
