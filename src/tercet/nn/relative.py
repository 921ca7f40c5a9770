"""MPNet's relative position bias, shared by all layers."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tercet.nn.architectures.record import EncoderConfig

_FARTHEST = 128


class RelativeBias(nn.Module):
    """A learned number for each head and bucket of distance between two tokens."""

    buckets: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.relative_buckets, config.heads)
        # Blocks may be padded to a multiple of 8 beyond the last position.
        self.farthest = config.positions + 7
        distances = torch.arange(-self.farthest, self.farthest + 1, device="cpu")
        buckets = bucket_of_distance(distances, buckets=config.relative_buckets)
        self.register_buffer("buckets", buckets, persistent=False)

    def forward(self, span: int) -> Tensor:
        """Bias of each token (row) towards each other (column): [heads, span, span]."""
        in_span = self.buckets[self.farthest - span + 1 : self.farthest + span]
        by_distance = self.table(in_span).t()
        # Row i holds distances -i .. span - 1 - i: the windows of `by_distance`, last first.
        # Fused attention takes a bias only when its last dimension is contiguous.
        bias: Tensor = by_distance.unfold(1, span, 1).flip(1).contiguous()
        return bias


def bucket_of_distance(distances: Tensor, *, buckets: int) -> Tensor:
    """Bucket of each distance, key position less query position; same shape, int64.

    Each direction has half of the buckets: half of those for exact distances, half growing
    logarithmically up to a distance of 128.
    """
    half = buckets // 2
    exact = half // 2
    away = distances.abs()
    growth = torch.log(away.float() / exact) / math.log(_FARTHEST / exact) * (half - exact)
    far = (exact + growth.clamp(min=0).long()).clamp(max=half - 1)
    return torch.where(away < exact, away, far) + half * (distances > 0)
