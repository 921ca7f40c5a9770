"""Hidden states to one vector per sentence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Pooling


def pool(
    hidden: Tensor, tokens: DeviceTokens, *, how: Pooling, pooler: nn.Module | None = None
) -> Tensor:
    """hidden [total, width] -> vectors [n, width].

    cls: the first token; pooler: `pooler` over the first token; mean and max: over all tokens
    """
    if how == "mean":
        return _mean(hidden, tokens)
    if how == "max":
        return _max(hidden, tokens)
    first = hidden.index_select(0, tokens.offsets[:-1])
    if how == "cls":
        return first
    if pooler is None:
        raise TercetError("pooling 'pooler' needs an encoder with a pooler; this one has none")
    pooled: Tensor = pooler(first)
    return pooled


def _mean(hidden: Tensor, tokens: DeviceTokens) -> Tensor:
    wide = hidden.float()
    if tokens.count == 1:
        return wide.mean(0, keepdim=True).to(hidden.dtype)
    summed = wide.new_zeros(tokens.count, hidden.shape[1]).index_add(0, tokens.rows, wide)
    return (summed / tokens.offsets.diff().unsqueeze(1)).to(hidden.dtype)


def _max(hidden: Tensor, tokens: DeviceTokens) -> Tensor:
    lowest = torch.full(
        (tokens.count, hidden.shape[1]), -torch.inf, dtype=hidden.dtype, device=hidden.device
    )
    rows = tokens.rows.unsqueeze(1).expand_as(hidden)
    return lowest.scatter_reduce(0, rows, hidden, "amax")
