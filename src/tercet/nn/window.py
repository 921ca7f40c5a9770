"""Attention to near tokens only: its memory grows with the tokens, not with their square."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from tercet.nn.attention import attend_block
from tercet.nn.device_tokens import AttentionBlock


def window_bias(
    block: AttentionBlock, half: int, dtype: torch.dtype, device: torch.device
) -> Tensor | None:
    """What is added to the scores of a block in which a token sees `half` tokens on each side.

    A row is cut into chunks of 2 * `half` queries; the keys of a chunk are its own tokens and
    `half` more on each side. -> [rows or 1, 1, 1, length] where everything is near, else
    [rows or 1, chunks, chunk, chunk + 2 * half]; None where there is nothing to hide
    """
    if block.length <= half + 1:
        return None if block.real is None else _hidden(block.real[:, None, None], dtype)
    chunk, chunks = _chunks(block, half)
    keys = torch.arange(chunk + 2 * half, device=device)
    queries = torch.arange(chunk, device=device)[:, None]
    is_near = (keys >= queries) & (keys <= queries + 2 * half)
    if block.real is None:
        places = torch.arange(chunks, device=device)[:, None] * chunk + keys - half
        is_real = ((places >= 0) & (places < block.length))[None]
    else:
        padded = F.pad(block.real, (half, chunks * chunk + half - block.length))
        is_real = padded.unfold(1, chunk + 2 * half, chunk)
    # A query that only fills a chunk sees itself: a softmax of nothing would not be a number.
    is_self = keys == queries + half
    return _hidden(is_near & (is_real[:, :, None] | is_self), dtype)


def attend_window(
    qkv: Tensor, block: AttentionBlock, bias: Tensor | None, *, half: int, dropout: float
) -> Tensor:
    """qkv [rows * length, 3, heads, head_width] -> [rows * length, heads, head_width].

    bias: of `window_bias`
    """
    if block.length <= half + 1:
        return attend_block(qkv, block, bias, dropout=dropout)
    assert bias is not None
    chunk, chunks = _chunks(block, half)
    rows, length, filled = block.rows, block.length, chunks * chunk
    shaped = qkv.view(rows, length, *qkv.shape[1:])
    padded = F.pad(shaped, (0, 0, 0, 0, 0, 0, half, filled + half - length))
    query = padded[:, half : half + filled, 0].view(rows, chunks, chunk, *qkv.shape[2:])
    near = padded[:, :, 1:].unfold(1, chunk + 2 * half, chunk)
    # [rows, chunks, 2, heads, head_width, keys]
    key, value = near.permute(2, 0, 1, 3, 5, 4).flatten(1, 2).unbind(0)
    mask = bias.expand(rows, *bias.shape[1:]).flatten(0, 1).unsqueeze(1)
    mixed = F.scaled_dot_product_attention(
        query.transpose(2, 3).flatten(0, 1), key, value, attn_mask=mask, dropout_p=dropout
    )
    joined = mixed.transpose(1, 2).reshape(rows, filled, *qkv.shape[2:])
    return joined[:, :length].reshape(-1, *qkv.shape[2:])


def _chunks(block: AttentionBlock, half: int) -> tuple[int, int]:
    """Queries of a chunk, and chunks of a row."""
    chunk = 2 * half
    return chunk, -(-block.length // chunk)


def _hidden(is_seen: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where a key is seen, else minus infinity."""
    bias = torch.zeros(is_seen.shape, dtype=dtype, device=is_seen.device)
    return bias.masked_fill(~is_seen, -math.inf)
