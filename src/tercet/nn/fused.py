"""The encoder in training on a GPU: matrix products in half precision, one kernel for all between.

The weights stay in float32. Matrix products read copies of them in half precision, renewed once a
step, and backward adds every gradient to the parameters' float32 `.grad` itself: nothing is cast,
copied or added up by kernels of its own. A layer is 8 kernels forward and 14 backward, where one
operation after the other takes about 90.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from tercet.nn import kernels
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder, Layer

# Beyond it a sentence's attention no longer fits into the registers of one program.
_LONGEST = 128
# Programs that keep sums: some for each of a GPU's processors, each with many rows to sum over.
_PROGRAMS = 528
_SITES_A_LAYER = 3


def fused(encoder: Encoder) -> FusedEncoder | None:
    """The fused forward and backward of an encoder that trains, where there is one."""
    config = encoder.config
    is_served = config.architecture.fused and config.activation == "gelu"
    fits = is_served and config.width // config.heads in (16, 32, 64, 128)
    return FusedEncoder(encoder) if fits and _trains(encoder) else None


class FusedEncoder:
    """An encoder's forward and backward, for as long as its weights are trained."""

    def __init__(self, encoder: Encoder, *, dtype: torch.dtype = torch.bfloat16) -> None:
        self.encoder = encoder
        self.layers = [_HalfLayer.of(cast(Layer, layer), dtype) for layer in encoder.layers]
        self.dtype = dtype
        self.refresh()

    def refresh(self) -> None:
        """Copy the weights, after they have changed."""
        pairs = [pair for layer in self.layers for pair in layer.copies()]
        torch._foreach_copy_([half for half, _ in pairs], [whole.detach() for _, whole in pairs])

    def __call__(self, tokens: DeviceTokens) -> Tensor | None:
        """tokens -> hidden states [total, width] in half precision; None for too long ones."""
        encoder = self.encoder
        if not 0 < tokens.longest <= _LONGEST:
            return None
        span = -(-tokens.longest // 8) * 8
        relative = encoder.relative_bias(span) if encoder.relative_bias is not None else None
        # Its own gradient is added in backward; it only tells autograd that there is one.
        anchor = next(parameter for parameter in encoder.parameters() if parameter.requires_grad)
        hidden: Tensor = _Forward.apply(self, tokens, relative, anchor)  # type: ignore[no-untyped-call]
        return hidden


@dataclass(frozen=True, slots=True)
class _HalfLayer:
    """A layer and copies of what its matrix products read."""

    layer: Layer
    qkv: Tensor
    qkv_bias: Tensor
    output: Tensor
    expand: Tensor
    contract: Tensor

    @classmethod
    def of(cls, layer: Layer, dtype: torch.dtype) -> _HalfLayer:
        attention, forward = layer.attention, layer.feed_forward
        wholes = (
            *(attention.qkv.weight, attention.qkv.bias, attention.output.weight),
            *(forward.expand.weight, forward.contract.weight),
        )
        return cls(layer, *(torch.empty_like(whole, dtype=dtype) for whole in wholes))

    def copies(self) -> list[tuple[Tensor, Tensor]]:
        attention, forward = self.layer.attention, self.layer.feed_forward
        return [
            (self.qkv, attention.qkv.weight),
            (self.qkv_bias, attention.qkv.bias),
            (self.output, attention.output.weight),
            (self.expand, forward.expand.weight),
            (self.contract, forward.contract.weight),
        ]


@dataclass(slots=True)
class _Norm:
    """A norm's output, and what its backward needs."""

    out: Tensor
    normed: Tensor
    spreads: Tensor

    @classmethod
    def empty(cls, like: Tensor) -> _Norm:
        spreads = torch.empty(len(like), device=like.device)
        return cls(torch.empty_like(like), torch.empty_like(like), spreads)


@dataclass(slots=True)
class _Kept:
    """What a layer's backward needs of its forward."""

    hidden: Tensor
    qkv: Tensor
    mixed: Tensor
    attended: _Norm
    expanded: Tensor
    bent: Tensor
    contracted: _Norm


class _Forward(torch.autograd.Function):
    """All layers as one operation: its inputs' gradients are those of the relative bias alone."""

    @staticmethod
    def forward(
        ctx: Any, fused: FusedEncoder, tokens: DeviceTokens, relative: Tensor | None, anchor: Tensor
    ) -> Tensor:
        run = _Run(fused, tokens, relative)
        ctx.run = run
        return run.forward()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor | None, None]:
        run: _Run = ctx.run
        del ctx.run
        return None, None, run.backward(grads[0].contiguous()), None


class _Run:
    """One forward and its backward."""

    def __init__(self, fused: FusedEncoder, tokens: DeviceTokens, relative: Tensor | None) -> None:
        self.encoder = fused.encoder
        self.config = fused.encoder.config
        self.layers = fused.layers
        self.tokens = tokens
        self.relative = relative
        self.dtype = fused.dtype
        self.training = fused.encoder.training
        device = tokens.ids.device
        sites = 1 + _SITES_A_LAYER * len(self.layers)
        self.seeds = torch.randint(1 << 31, (sites,), device=device, dtype=torch.int64)
        self.d_relative = (
            torch.zeros_like(relative)
            if relative is not None and relative.requires_grad and relative.numel()
            else None
        )
        self.kept: list[_Kept] = []

    def forward(self) -> Tensor:
        self.embedded = self._embed()
        hidden = self.embedded.out
        for number in range(len(self.layers)):
            hidden = self._layer(number, hidden)
        return hidden

    def backward(self, grad: Tensor) -> Tensor | None:
        lowest = self._lowest_that_trains()
        for number in reversed(range(lowest, len(self.layers))):
            grad = self._layer_backward(number, grad, last=number == lowest and lowest > 0)
        if not lowest and _trains(self.encoder.embeddings.words):
            self._embed_backward(grad)
        return self.d_relative

    def _lowest_that_trains(self) -> int:
        """The layer at which backward may stop: nothing below it trains."""
        if _trains(self.encoder.embeddings) or self.d_relative is not None:
            return 0
        return next(number for number, layer in enumerate(self.layers) if _trains(layer.layer))

    def _embed(self) -> _Norm:
        tokens, embeddings, config = self.tokens, self.encoder.embeddings, self.config
        like = torch.empty(
            len(tokens.ids), config.width, device=tokens.ids.device, dtype=self.dtype
        )
        norm = _Norm.empty(like)
        kinds = embeddings.types
        kernels.embed_forward[(len(like),)](
            *(tokens.ids, tokens.positions, tokens.types),
            *(embeddings.words.weight, embeddings.positions.weight),
            embeddings.words.weight if kinds is None else kinds.weight,
            *(embeddings.norm.weight, embeddings.norm.bias, self.seeds),
            *(norm.out, norm.normed, norm.spreads),
            *(config.architecture.first_position, config.norm_eps, self._rate(config.dropout)),
            WIDTH=config.width,
            BLOCK=_power_of_two(config.width),
            TYPES=config.token_types,
        )
        return norm

    def _embed_backward(self, grad: Tensor) -> None:
        tokens, embeddings, config = self.tokens, self.encoder.embeddings, self.config
        words, kinds = embeddings.words.weight.grad, embeddings.types
        each = _rows_a_program(len(grad))
        kernels.embed_backward[(_programs(len(grad), each),)](
            *(grad, tokens.ids, tokens.positions, tokens.types, embeddings.norm.weight, self.seeds),
            *(self.embedded.normed, self.embedded.spreads, words, embeddings.positions.weight.grad),
            words if kinds is None else kinds.weight.grad,
            *(embeddings.norm.weight.grad, embeddings.norm.bias.grad),
            *(len(grad), config.architecture.first_position, self._rate(config.dropout), each),
            WIDTH=config.width,
            BLOCK=_power_of_two(config.width),
            TYPES=config.token_types,
        )

    def _layer(self, number: int, hidden: Tensor) -> Tensor:
        half = self.layers[number]
        layer = half.layer
        qkv = torch.addmm(half.qkv_bias, hidden, half.qkv.t())
        mixed = self._attend(number, qkv)
        attended = self._residual_norm(
            torch.mm(mixed, half.output.t()),
            hidden,
            bias=layer.attention.output.bias,
            norm=layer.attention_norm,
            site=self._site(number, 1),
        )
        expanded = torch.mm(attended.out, half.expand.t())
        bent = self._bend(expanded, layer.feed_forward.expand.bias)
        contracted = self._residual_norm(
            torch.mm(bent, half.contract.t()),
            attended.out,
            bias=layer.feed_forward.contract.bias,
            norm=layer.feed_forward_norm,
            site=self._site(number, 2),
        )
        self.kept.append(_Kept(hidden, qkv, mixed, attended, expanded, bent, contracted))
        return contracted.out

    def _layer_backward(self, number: int, grad: Tensor, *, last: bool) -> Tensor:
        """The gradient after a layer [total, width] -> before it; unchanged where it is `last`."""
        half, kept = self.layers[number], self.kept.pop()
        layer = half.layer
        attention, forward = layer.attention, layer.feed_forward
        through, grad = self._residual_norm_backward(
            grad, kept.contracted, forward.contract, layer.feed_forward_norm, self._site(number, 2)
        )
        _accumulate(forward.contract.weight, grad, kept.bent)
        grad = self._bend_backward(torch.mm(grad, half.contract), kept.expanded, forward.expand)
        _accumulate(forward.expand.weight, grad, kept.attended.out)
        grad = torch.addmm(through, grad, half.expand)
        through, grad = self._residual_norm_backward(
            grad, kept.attended, attention.output, layer.attention_norm, self._site(number, 1)
        )
        _accumulate(attention.output.weight, grad, kept.mixed)
        grad = self._attend_backward(number, torch.mm(grad, half.output), kept.qkv)
        _accumulate(attention.qkv.weight, grad, kept.hidden)
        return grad if last else torch.addmm(through, grad, half.qkv)

    def _attend(self, number: int, qkv: Tensor) -> Tensor:
        config = self.config
        mixed = torch.empty(len(qkv), config.width, device=qkv.device, dtype=qkv.dtype)
        for length, shortest, each in self._lengths():
            kernels.attend_forward[(-(-self.tokens.count // each), config.heads)](
                *(qkv, self.tokens.offsets, self._relative_or(qkv), self.seeds, mixed),
                *self._attention_numbers(number, each, shortest),
                HEADS=config.heads,
                WIDTH=config.width // config.heads,
                LENGTH=length,
                RELATIVE=self.relative is not None,
                num_warps=_warps(length),
            )
        return mixed

    def _attend_backward(self, number: int, grad: Tensor, qkv: Tensor) -> Tensor:
        config = self.config
        bias = self.layers[number].layer.attention.qkv.bias
        d_qkv = torch.empty_like(qkv)
        learned = self.d_relative if self.d_relative is not None else qkv
        for length, shortest, each in self._lengths():
            kernels.attend_backward[(-(-self.tokens.count // each), config.heads)](
                *(grad, qkv, self.tokens.offsets, self._relative_or(qkv), self.seeds),
                *(d_qkv, bias.grad if bias.requires_grad else bias, learned),
                *self._attention_numbers(number, each, shortest),
                HEADS=config.heads,
                WIDTH=config.width // config.heads,
                LENGTH=length,
                RELATIVE=self.relative is not None,
                TRAINS=bias.requires_grad,
                LEARNS=self.d_relative is not None,
                num_warps=_warps(length),
            )
        return d_qkv

    def _lengths(self) -> list[tuple[int, int, int]]:
        """Lengths of tiles, the longest sentence that a shorter tile takes, rows a program."""
        each = max(1, self.tokens.count * self.config.heads // (2 * _PROGRAMS))
        found, shortest = [], 0
        for length in (16, 32, 64, 128):
            found.append((length, shortest, each))
            shortest = length
            if length >= self.tokens.longest:
                break
        # Tiles of 16 and 32 take about as long: one launch fewer.
        return found if len(found) == 1 else [(32, 0, each), *found[2:]]

    def _attention_numbers(self, number: int, each: int, shortest: int) -> tuple[float, ...]:
        config = self.config
        span = 0 if self.relative is None else self.relative.shape[1]
        scale = 1.0 / math.sqrt(config.width // config.heads)
        rate = self._rate(config.attention_dropout)
        return self._site(number, 0), self.tokens.count, span, scale, rate, each, shortest

    def _relative_or(self, other: Tensor) -> Tensor:
        return other if self.relative is None else self.relative

    def _residual_norm(
        self, x: Tensor, residual: Tensor, *, bias: Tensor, norm: nn.LayerNorm, site: int
    ) -> _Norm:
        found = _Norm.empty(x)
        kernels.residual_norm_forward[(len(x),)](
            *(x, bias, residual, norm.weight, norm.bias, self.seeds),
            *(found.out, found.normed, found.spreads),
            *(site, self.config.norm_eps, self._rate(self.config.dropout)),
            WIDTH=self.config.width,
            BLOCK=_power_of_two(self.config.width),
        )
        return found

    def _residual_norm_backward(
        self, grad: Tensor, kept: _Norm, before: nn.Linear, norm: nn.LayerNorm, site: int
    ) -> tuple[Tensor, Tensor]:
        """The gradients of the residual and of what was added to it, each [total, width]."""
        d_residual, d_x = torch.empty_like(grad), torch.empty_like(grad)
        each = _rows_a_program(len(grad))
        trains = norm.weight.requires_grad
        kernels.residual_norm_backward[(_programs(len(grad), each),)](
            *(grad, norm.weight, self.seeds, kept.normed, kept.spreads, d_residual, d_x),
            *(_grad(norm.weight), _grad(norm.bias), _grad(before.bias)),
            *(site, len(grad), self._rate(self.config.dropout), each),
            WIDTH=self.config.width,
            BLOCK=_power_of_two(self.config.width),
            TRAINS=trains,
        )
        return d_residual, d_x

    def _bend(self, x: Tensor, bias: Tensor) -> Tensor:
        out = torch.empty_like(x)
        block = 1024
        kernels.gelu_forward[(-(-x.numel() // block),)](
            x, bias, out, x.numel(), COLUMNS=x.shape[1], BLOCK=block
        )
        return out

    def _bend_backward(self, grad: Tensor, x: Tensor, before: nn.Linear) -> Tensor:
        d_x = torch.empty_like(x)
        rows, columns = x.shape
        block = 128
        strips = -(-columns // block)
        each = max(16, -(-rows * strips // (2 * _PROGRAMS)))
        kernels.gelu_backward[(strips, -(-rows // each))](
            *(grad, x, before.bias, d_x, _grad(before.bias), rows, each),
            COLUMNS=columns,
            ROWS=16,
            BLOCK=block,
            TRAINS=before.bias.requires_grad,
        )
        return d_x

    def _site(self, number: int, which: int) -> int:
        return 1 + _SITES_A_LAYER * number + which

    def _rate(self, rate: float) -> float:
        return rate if self.training else 0.0


def _accumulate(weight: Tensor, grad: Tensor, given: Tensor) -> None:
    """Add the gradient of a matrix, grad [total, out] by given [total, in], in float32."""
    if not weight.requires_grad:
        return
    assert weight.grad is not None
    if grad.dtype == torch.float32:
        weight.grad.addmm_(grad.t(), given)
        return
    torch.addmm(weight.grad, grad.t(), given, out_dtype=torch.float32, out=weight.grad)


def _grad(parameter: Tensor) -> Tensor:
    """Where a kernel adds a gradient; frozen parameters are passed, and not touched."""
    if not parameter.requires_grad:
        return parameter
    assert parameter.grad is not None
    return parameter.grad


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())


def _rows_a_program(rows: int) -> int:
    return max(4, -(-rows // _PROGRAMS))


def _programs(rows: int, each: int) -> int:
    return -(-rows // each)


def _power_of_two(width: int) -> int:
    return 1 << (width - 1).bit_length()


def _warps(length: int) -> int:
    return 8 if length >= 128 else 4 if length >= 64 else 1
