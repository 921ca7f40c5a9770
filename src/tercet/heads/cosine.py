"""The cosine of two vectors, optionally after one linear layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.heads import onnx
from tercet.nn.cosine import cosine

if TYPE_CHECKING:
    from tercet.nn.onnx.graph import Graph


class CosineHead(nn.Module):
    def __init__(
        self,
        *,
        width: int,
        outputs: int = 1,
        projection: bool = False,
        projection_width: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if outputs != 1:
            raise TercetError(
                f"a `cosine` head gives one number, and its objective needs {outputs}"
            )
        self.projection = (
            nn.Linear(width, projection_width or width) if projection else nn.Identity()
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """u [n, width], v [n, width] -> fp32 [n, 1]"""
        u, v = (self.projection(self.dropout(vectors)) for vectors in (u, v))
        return cosine(u, v).unsqueeze(-1)

    def to_onnx(self, graph: Graph, u: str, v: str) -> str:
        if isinstance(self.projection, nn.Linear):
            u, v = (onnx.linear(graph, self.projection, vectors) for vectors in (u, v))
        return onnx.cosine(graph, u, v)
