"""Launches of the Triton kernels: grids, tile sizes and memory for what they compute."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tercet.nn import kernels
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder

# Beyond it a sentence's attention no longer fits into the registers of one program.
LONGEST = 128
# Programs that keep sums: some for each of a GPU's processors, each with many rows to sum over.
_PROGRAMS = 528
# Sentences per program where nothing is summed.
_ROWS = 4
_SITES_PER_LAYER = 3
_compiled_only: ContextVar[list[Any] | None] = ContextVar("compiled_only", default=None)


@contextmanager
def compiled_only() -> Iterator[list[Any]]:
    """Kernels are compiled and not launched, in this thread; what Triton returns for each."""
    kernels: list[Any] = []
    token = _compiled_only.set(kernels)
    try:
        yield kernels
    finally:
        _compiled_only.reset(token)


def _launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **shape: Any) -> None:
    compiled = _compiled_only.get()
    if compiled is None:
        kernel[grid](*arguments, **shape)
    else:
        compiled.append(kernel.warmup(*arguments, grid=grid, **shape))


@dataclass(slots=True)
class Norm:
    """A norm's output, and what its backward needs."""

    out: Tensor
    normed: Tensor
    spreads: Tensor

    @classmethod
    def empty(cls, like: Tensor) -> Norm:
        spreads = torch.empty(len(like), device=like.device)
        return cls(torch.empty_like(like), torch.empty_like(like), spreads)


class Launches:
    """The kernels of one forward and its backward, all with the same seeds for dropout.

    relative: relative position bias [heads, span, span], or None
    d_relative: its gradient, where it trains
    """

    def __init__(self, encoder: Encoder, tokens: DeviceTokens, relative: Tensor | None) -> None:
        self.config = encoder.config
        self.embeddings = encoder.embeddings
        self.tokens = tokens
        # The only type of an encoder that has one is that of all tokens.
        has_types = self.config.token_types > 1
        self._types = tokens.types if has_types else torch.zeros_like(tokens.types)
        self.relative = relative
        self.training = encoder.training
        sites = 1 + _SITES_PER_LAYER * self.config.layers
        self._row_shape = {
            "WIDTH": self.config.width,
            "BLOCK": 1 << (self.config.width - 1).bit_length(),
        }
        self.seeds = torch.randint(1 << 31, (sites,), device=tokens.ids.device, dtype=torch.int64)
        self.d_relative = (
            torch.zeros_like(relative)
            if relative is not None and relative.requires_grad and relative.numel()
            else None
        )

    def embed(self, dtype: torch.dtype) -> Norm:
        tokens, embeddings, config = self.tokens, self.embeddings, self.config
        like = torch.empty(len(tokens.ids), config.width, device=tokens.ids.device, dtype=dtype)
        norm = Norm.empty(like)
        kinds = embeddings.types
        _launch(
            kernels.embed_forward,
            (len(like),),
            *(tokens.ids, tokens.positions, self._types),
            *(embeddings.words.weight, embeddings.positions.weight),
            embeddings.words.weight if kinds is None else kinds.weight,
            *(embeddings.norm.weight, embeddings.norm.bias, self.seeds),
            *(norm.out, norm.normed, norm.spreads),
            *(embeddings.first_position, config.norm_eps, self._rate(config.dropout)),
            **self._row_shape,
            TYPES=config.token_types,
        )
        return norm

    def embed_backward(self, grad: Tensor, embedded: Norm) -> None:
        tokens, embeddings, config = self.tokens, self.embeddings, self.config
        words, kinds = embeddings.words.weight.grad, embeddings.types
        each = _rows_per_program(len(grad))
        _launch(
            kernels.embed_backward,
            (-(-len(grad) // each),),
            *(grad, tokens.ids, tokens.positions, self._types, embeddings.norm.weight, self.seeds),
            *(embedded.normed, embedded.spreads, words, embeddings.positions.weight.grad),
            words if kinds is None else kinds.weight.grad,
            *(embeddings.norm.weight.grad, embeddings.norm.bias.grad),
            *(len(grad), embeddings.first_position, self._rate(config.dropout), each),
            **self._row_shape,
            TYPES=config.token_types,
        )

    def attend(self, number: int, qkv: Tensor) -> Tensor:
        """Attention of layer `number`: qkv [total, 3 * width] -> [total, width]."""
        config = self.config
        mixed = torch.empty(len(qkv), config.width, device=qkv.device, dtype=qkv.dtype)
        for length, shortest, each in self._tiles():
            _launch(
                kernels.attend_forward,
                (-(-self.tokens.count // each), config.heads),
                *(qkv, self.tokens.offsets, self._relative_or(qkv), self.seeds, mixed),
                *self._attention_numbers(number, each, shortest),
                RELATIVE=self.relative is not None,
                **self._tile_shape(length),
            )
        return mixed

    def attend_backward(self, number: int, grad: Tensor, qkv: Tensor, before: nn.Linear) -> Tensor:
        """The gradient of `qkv`; the gradient of the bias of `before` is added to it."""
        config, bias = self.config, before.bias
        d_qkv = torch.empty_like(qkv)
        for length, shortest, each in self._tiles():
            _launch(
                kernels.attend_backward,
                (-(-self.tokens.count // each), config.heads),
                *(grad, qkv, self.tokens.offsets, self._relative_or(qkv), self.seeds),
                *(d_qkv, _grad(bias), qkv if self.d_relative is None else self.d_relative),
                *self._attention_numbers(number, each, shortest),
                RELATIVE=self.relative is not None,
                **self._tile_shape(length),
                TRAINS=bias.requires_grad,
                LEARNS=self.d_relative is not None,
            )
        return d_qkv

    def residual_norm(
        self, site: int, x: Tensor, residual: Tensor, before: nn.Linear, norm: nn.LayerNorm
    ) -> Norm:
        """The norm of `x` plus the bias of `before`, dropped out, plus the residual."""
        result = Norm.empty(x)
        _launch(
            kernels.residual_norm_forward,
            (len(x),),
            *(x, before.bias, residual, norm.weight, norm.bias, self.seeds),
            *(result.out, result.normed, result.spreads),
            *(site, self.config.norm_eps, self._rate(self.config.dropout)),
            **self._row_shape,
        )
        return result

    def residual_norm_backward(
        self, site: int, grad: Tensor, result: Norm, before: nn.Linear, norm: nn.LayerNorm
    ) -> tuple[Tensor, Tensor]:
        """The gradients of the residual and of what was added to it, each [total, width]."""
        d_residual, d_x = torch.empty_like(grad), torch.empty_like(grad)
        each = _rows_per_program(len(grad))
        _launch(
            kernels.residual_norm_backward,
            (-(-len(grad) // each),),
            *(grad, norm.weight, self.seeds, result.normed, result.spreads, d_residual, d_x),
            *(_grad(norm.weight), _grad(norm.bias), _grad(before.bias)),
            *(site, len(grad), self._rate(self.config.dropout), each),
            **self._row_shape,
            TRAINS=norm.weight.requires_grad,
        )
        return d_residual, d_x

    def site(self, number: int, which: int) -> int:
        """The place of a dropout among all, for its seed; which: 0 attention, 1 and 2 norms."""
        return 1 + _SITES_PER_LAYER * number + which

    def _tiles(self) -> list[tuple[int, int, int]]:
        """Of each tile: its length, the longest sentence of the shorter tile, rows per program."""
        each = max(1, self.tokens.count * self.config.heads // (2 * _PROGRAMS))
        return [(length, shortest, each) for length, shortest in _tiles(self.tokens.longest)]

    def _tile_shape(self, length: int) -> dict[str, int]:
        heads, width = self.config.heads, self.config.width // self.config.heads
        return _tile_shape(length, heads=heads, width=width)

    def _attention_numbers(self, number: int, each: int, shortest: int) -> tuple[float, ...]:
        config = self.config
        span = 0 if self.relative is None else self.relative.shape[1]
        scale = 1.0 / math.sqrt(config.width // config.heads)
        rate = self._rate(config.attention_dropout)
        return self.site(number, 0), self.tokens.count, span, scale, rate, each, shortest

    def _relative_or(self, other: Tensor) -> Tensor:
        return other if self.relative is None else self.relative

    def _rate(self, rate: float) -> float:
        return rate if self.training else 0.0


def attend_ragged(qkv: Tensor, tokens: DeviceTokens, relative: Tensor) -> Tensor:
    """Attention with a relative position bias, float32 [heads, span, span], for inference.

    qkv [total, 3, heads, head_width] -> [total, heads, head_width]; no row exceeds LONGEST
    """
    _, _, heads, width = qkv.shape
    mixed = torch.empty_like(qkv[:, 0], memory_format=torch.contiguous_format)
    scale, no_dropout = 1.0 / math.sqrt(width), 0.0
    numbers = 0, tokens.count, relative.shape[1], scale, no_dropout, _ROWS
    seeds = torch.zeros_like(tokens.ids[:1])  # not read
    for length, shortest in _tiles(tokens.longest):
        _launch(
            kernels.attend_forward,
            (-(-tokens.count // _ROWS), heads),
            *(qkv, tokens.offsets, relative, seeds, mixed),
            *(*numbers, shortest),
            RELATIVE=True,
            **_tile_shape(length, heads=heads, width=width),
        )
    return mixed


def turn(qkv: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn queries and keys in place, for inference; computed in float32.

    qkv [total, 3, heads, head_width], cosines and sines [total, ..., head_width / 2] -> qkv
    """
    total, _, heads, width = qkv.shape
    block = 16
    _launch(
        kernels.turn,
        (-(-total // block),),
        *(qkv, cosines.contiguous(), sines.contiguous(), total),
        HEADS=heads,
        HALF=width // 2,
        BLOCK=block,
        num_warps=2,
    )
    return qkv


def gate_gelu(expanded: Tensor) -> Tensor:
    """GELU of the first half of the columns times the second, for inference; in float32.

    expanded [total, 2 * columns] -> [total, columns], in the memory of the first half
    """
    gated = expanded.chunk(2, dim=-1)[0]
    block = 1024
    _launch(
        kernels.gate_gelu,
        (-(-gated.numel() // block),),
        *(expanded, gated.numel()),
        COLUMNS=gated.shape[1],
        BLOCK=block,
    )
    return gated


def attend_disentangled(
    qkv: Tensor,
    tokens: DeviceTokens,
    *,
    query_distances: Tensor | None,
    key_distances: Tensor | None,
    scale: float,
) -> Tensor:
    """Attention that also compares words with distances, for inference.

    qkv [total, 3, heads, head_width] -> [total, heads, head_width]; no row exceeds LONGEST
    query_distances, key_distances: products of the words with the distances, query less key, from
        1 - span to span, [heads, total, 2 * span]; None where they are not compared
    """
    total, _, heads, width = qkv.shape
    compared = [each for each in (query_distances, key_distances) if each is not None]
    mixed = torch.empty_like(qkv[:, 0], memory_format=torch.contiguous_format)
    numbers = total, tokens.count, compared[0].shape[-1] // 2, scale, _ROWS
    for length, shortest in _tiles(tokens.longest):
        _launch(
            kernels.attend_disentangled,
            (-(-tokens.count // _ROWS), heads),
            *(qkv, tokens.offsets),
            *(
                each if each is not None else compared[0]
                for each in (query_distances, key_distances)
            ),
            *(mixed, *numbers, shortest),
            C2P=query_distances is not None,
            P2C=key_distances is not None,
            **_tile_shape(length, heads=heads, width=width),
        )
    return mixed


def _tiles(longest: int) -> list[tuple[int, int]]:
    """Of each tile: its length, and the longest sentence of the shorter tile."""
    tiles, shortest = [], 0
    for length in (16, 32, 64, LONGEST):
        tiles.append((length, shortest))
        shortest = length
        if length >= longest:
            break
    # Tiles of 16 and 32 take about as long: one launch fewer.
    return tiles if len(tiles) == 1 else [(32, 0), *tiles[2:]]


def _tile_shape(length: int, *, heads: int, width: int) -> dict[str, int]:
    return {
        "HEADS": heads,
        "WIDTH": width,
        "LENGTH": length,
        "num_warps": 8 if length >= 128 else 4 if length >= 64 else 1,
    }


def gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU of x [total, columns] plus the bias."""
    out = torch.empty_like(x)
    block = 1024
    _launch(
        kernels.gelu_forward,
        (-(-x.numel() // block),),
        x,
        bias,
        out,
        x.numel(),
        COLUMNS=x.shape[1],
        BLOCK=block,
    )
    return out


def gelu_backward(grad: Tensor, x: Tensor, before: nn.Linear) -> Tensor:
    """The gradient of `x`; the gradient of the bias of `before` is added to it."""
    d_x = torch.empty_like(x)
    rows, columns = x.shape
    block = 128
    strips = -(-columns // block)
    each = max(16, -(-rows * strips // (2 * _PROGRAMS)))
    _launch(
        kernels.gelu_backward,
        (strips, -(-rows // each)),
        *(grad, x, before.bias, d_x, _grad(before.bias), rows, each),
        COLUMNS=columns,
        ROWS=16,
        BLOCK=block,
        TRAINS=before.bias.requires_grad,
    )
    return d_x


def _grad(parameter: Tensor) -> Tensor:
    """Where a kernel adds a gradient; frozen parameters are passed and not touched."""
    if not parameter.requires_grad:
        return parameter
    assert parameter.grad is not None
    return parameter.grad


def _rows_per_program(rows: int) -> int:
    return max(4, -(-rows // _PROGRAMS))
