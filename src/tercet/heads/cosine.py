"""The cosine of two vectors, optionally after one linear layer."""

from __future__ import annotations

from torch import Tensor, nn

from tercet.heads import onnx
from tercet.nn.cosine import cosine


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
        self.projection = (
            nn.Linear(width, projection_width or width) if projection else nn.Identity()
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """u [n, width], v [n, width] -> fp32 [n, 1]"""
        u, v = (self.projection(self.dropout(vectors)) for vectors in (u, v))
        return cosine(u, v).unsqueeze(-1)

    def to_onnx(self, graph: onnx.Graph, u: str, v: str) -> str:
        if isinstance(self.projection, nn.Linear):
            u, v = (onnx.linear(graph, self.projection, vectors) for vectors in (u, v))
        return onnx.cosine(graph, u, v)
