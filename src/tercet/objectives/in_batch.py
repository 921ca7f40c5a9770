"""The softmax over in-batch candidates that contrastive objectives share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tercet.nn.cosine import cosine_matrix
from tercet.objectives.base import Columns


def in_batch_cross_entropy(
    anchors: Tensor, candidates: Columns, *, first: int, scale: float
) -> Tensor:
    """Sum over anchors [n, width] of -log softmax(scale * cosine) at each one's own positive.

    candidates: all positives, then all hard negatives if there are any, each [N, width];
    the positive of anchor i is row first + i of the positives.
    """
    logits = scale * cosine_matrix(anchors, torch.cat(candidates))
    own = torch.arange(first, first + len(anchors), device=anchors.device)
    return functional.cross_entropy(logits, own, reduction="sum")
