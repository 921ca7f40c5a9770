"""DeBERTa's parts: attention that also compares words with distances (He et al., 2021)."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tercet.nn.architectures.deberta import DebertaConfig
from tercet.nn.attention import AttentionInputs, SelfAttention, by_blocks, takes_kernel
from tercet.nn.device_tokens import AttentionBlock, DeviceTokens
from tercet.nn.dropout import Dropout
from tercet.nn.encoder import Layer, norm


class DisentangledEmbeddings(nn.Module):
    """Word and, where the encoder has them, token type embeddings."""

    def __init__(self, config: DebertaConfig) -> None:
        super().__init__()
        width = config.words_width
        self.words = nn.Embedding(config.vocabulary, width)
        self.types = nn.Embedding(config.token_types, width) if config.token_types else None
        self.widen = nn.Linear(width, config.width, bias=False) if width != config.width else None
        self.norm = norm(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, tokens: DeviceTokens) -> Tensor:
        """tokens -> [total, width], in the order of the attention plan."""
        order = tokens.plan.order
        ids, types = (
            indices if order is None else indices.index_select(0, order)
            for indices in (tokens.ids, tokens.types)
        )
        summed = self.words.forward(ids)
        if self.types is not None:
            summed = summed + self.types.forward(types)
        if self.widen is not None:
            summed = self.widen.forward(summed)
        return self.dropout.forward(self.norm.forward(summed))


class Distances(nn.Module):
    """A learned vector for each bucket of distance between two tokens, shared by all layers."""

    buckets: Tensor

    def __init__(self, config: DebertaConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.table_rows, config.width)
        self.norm = norm(config) if config.has_table_norm else None
        # Blocks may be padded to a multiple of 8 beyond the last position.
        self.farthest = config.positions + 7
        distances = torch.arange(-self.farthest, self.farthest + 1, device="cpu")
        half = config.table_rows // 2
        if config.buckets > 0:
            distances = log_buckets(distances, buckets=config.buckets, farthest=config.reach)
        rows = (distances + half).clamp(0, config.table_rows - 1)
        self.register_buffer("buckets", rows, persistent=False)

    def forward(self, tokens: DeviceTokens, dtype: torch.dtype) -> Tensor:
        """The vectors of the distances, query less key, in ascending order: [2 * span - 1, width].

        span: the length of the longest block
        """
        span = max((block.length for block in tokens.plan.blocks), default=1)
        vectors = self.table.forward(self.buckets[self.farthest - span + 1 : self.farthest + span])
        return vectors if self.norm is None else self.norm.forward(vectors)


class DisentangledAttention(SelfAttention):
    """Attention whose scores also depend on a word and the distance to another."""

    def __init__(self, config: DebertaConfig) -> None:
        super().__init__(width=config.width, heads=config.heads, dropout=config.attention_dropout)
        self.scale = 1.0 / math.sqrt(self.head_width * (1 + len(set(config.comparisons))))
        self.comparisons = frozenset(config.comparisons)
        apart = () if config.shares_projections else self.comparisons
        width = config.width
        self.distance_keys = nn.Linear(width, width) if "c2p" in apart else None
        self.distance_queries = nn.Linear(width, width) if "p2c" in apart else None
        self.distance_dropout = Dropout(config.dropout)

    def attend(self, qkv: Tensor, inputs: AttentionInputs) -> Tensor:
        """qkv [total, 3, heads, head_width] -> [total, heads, head_width]."""
        distances = self.distance_dropout.forward(inputs.relations)
        keys = self._projected(distances, "c2p", self.distance_keys, place=1)
        queries = self._projected(distances, "p2c", self.distance_queries, place=0)
        compares = keys is not None or queries is not None
        if compares and takes_kernel(inputs.tokens, qkv.dtype, self.head_width):
            return self._attend_rows(qkv, inputs.tokens, keys=keys, queries=queries)
        attend = partial(self._attend_block, keys=keys, queries=queries)
        return by_blocks(qkv, inputs.tokens.plan, inputs.biases, attend)

    def _attend_rows(
        self, qkv: Tensor, tokens: DeviceTokens, *, keys: Tensor | None, queries: Tensor | None
    ) -> Tensor:
        """Attention by one kernel for all rows; shapes as in `_attend_block`."""
        # Triton is imported where it is used: it takes time, and most machines lack it.
        from tercet.nn.launches import attend_disentangled

        return attend_disentangled(
            qkv,
            tokens,
            query_distances=None if keys is None else _compare_all(qkv[:, 0], keys),
            key_distances=None if queries is None else _compare_all(qkv[:, 1], queries),
            scale=self.scale,
        )

    def _projected(
        self, distances: Tensor, comparison: str, own: nn.Linear | None, *, place: int
    ) -> Tensor | None:
        """distances [n, width] -> [heads, head_width, n], by an own projection or the words',
        scaled as scores are.

        place: of the words' projection in `qkv`
        """
        if comparison not in self.comparisons:
            return None
        if own is not None:
            projected = own.forward(distances)
        else:
            weight, bias = self.qkv.weight.chunk(3)[place], self.qkv.bias.chunk(3)[place]
            projected = F.linear(distances, weight, bias)
        return (projected * self.scale).view(-1, self.heads, self.head_width).permute(1, 2, 0)

    def _attend_block(
        self,
        qkv: Tensor,
        block: AttentionBlock,
        bias: Tensor | None,
        *,
        keys: Tensor | None,
        queries: Tensor | None,
    ) -> Tensor:
        """qkv [rows * length, 3, heads, head_width] -> [rows * length, heads, head_width].

        keys, queries: of the distances, [heads, head_width, 2 * span - 1]
        """
        shaped = qkv.view(block.rows, block.length, *qkv.shape[1:])
        query, key, value = shaped.permute(2, 0, 3, 1, 4).unbind(0)
        added = bias
        if keys is not None:
            # Row i of a query compares with the distances i, i - 1, ...: they descend.
            near = _nearest(keys, block.length).flip(-1)
            added = _sum(added, skewed(_compare(qkv[:, 0], near, block)))
        if queries is not None:
            compared = skewed(_compare(qkv[:, 1], _nearest(queries, block.length), block))
            added = _sum(added, compared.transpose(-1, -2))
        mixed = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=added,
            dropout_p=self.dropout if self.training else 0.0,
            scale=self.scale,
        )
        return mixed.transpose(1, 2).reshape(-1, *qkv.shape[2:])


class DisentangledLayer(Layer):
    """BERT's layer with disentangled attention."""

    def __init__(self, config: DebertaConfig, number: int) -> None:
        super().__init__(config, number)
        self.attention = DisentangledAttention(config)


def log_buckets(distances: Tensor, *, buckets: int, farthest: int) -> Tensor:
    """Bucket of each distance, int64: exact up to half of the buckets, then by its logarithm."""
    middle = buckets // 2
    away = distances.abs()
    beyond = away.clamp(min=middle).float() / middle
    growth = torch.log(beyond) / torch.log(torch.tensor((farthest - 1) / middle, device="cpu"))
    far = (torch.ceil(growth * (middle - 1)) + middle).long() * distances.sign()
    return torch.where(away <= middle, distances, far)


def skewed(compared: Tensor) -> Tensor:
    """[..., length, 2 * length - 1] -> [..., length, length]: row i from column length - 1 - i."""
    length = compared.shape[-2]
    if length == 1:
        return compared
    flat = compared.flatten(-2)[..., length - 1 : -1]
    return flat.view(*flat.shape[:-1], length, 2 * length - 2)[..., :length]


def _nearest(distances: Tensor, length: int) -> Tensor:
    """Those of the distances, [..., 2 * span - 1], that occur in rows of a length."""
    middle = distances.shape[-1] // 2
    return distances[..., middle - length + 1 : middle + length]


def _compare(words: Tensor, distances: Tensor, block: AttentionBlock) -> Tensor:
    """Products of words with distances.

    words: [rows * length, heads, head_width]; distances: [heads, head_width, n]
    -> [rows, heads, length, n]
    """
    if words.device.type == "cpu":
        # Blocks have few rows: a copy of the distances for each costs less than long strides.
        return words.view(block.rows, block.length, *words.shape[1:]).transpose(1, 2) @ distances
    products = torch.bmm(words.transpose(0, 1), distances)
    return products.view(len(products), block.rows, block.length, -1).transpose(0, 1)


def _compare_all(words: Tensor, distances: Tensor) -> Tensor:
    """Products of all words with all distances, and with one that is 0.

    words: [total, heads, head_width]; distances: [heads, head_width, n] -> [heads, total, n + 1]
    """
    # Products whose rows have an odd length are several times slower.
    return torch.bmm(words.transpose(0, 1), F.pad(distances, (0, 1)))


def _sum(bias: Tensor | None, more: Tensor) -> Tensor:
    return more if bias is None else bias + more
