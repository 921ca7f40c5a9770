"""The encoder in training on a GPU: half-precision matrix products, fused kernels between them.

The weights stay in float32. Matrix products read half-precision copies, renewed once per step, and
backward adds every gradient to the parameters' float32 `.grad` itself: no separate kernels cast,
copy or add. A layer is 8 kernels forward and 14 backward; unfused it takes about 90.

It does not compute side weights (`nn.side`): batches of tasks that have them take the plain layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder, Layer
from tercet.nn.launches import LONGEST, Launches, Norm, gelu, gelu_backward


def is_fused(encoder: Encoder) -> bool:
    """Whether the fused layers compute this encoder, and something of it trains."""
    config = encoder.config
    is_served = config.architecture.fused and config.activation == "gelu"
    fits = (
        config.width // config.heads in (16, 32, 64, 128)
        and config.words_width == config.width
        and config.token_types <= 2
    )
    return is_served and fits and _trains(encoder)


class FusedEncoder:
    """An encoder's forward and backward while its weights train."""

    def __init__(self, encoder: Encoder, *, dtype: torch.dtype = torch.bfloat16) -> None:
        self.encoder = encoder
        self.layers = [_HalfLayer(cast(Layer, layer), dtype) for layer in encoder.layers]
        self.dtype = dtype
        self.refresh()

    def refresh(self) -> None:
        """Copy the weights again after a change."""
        copies = [copy for layer in self.layers for copy in layer.copies]
        wholes = [whole.detach() for layer in self.layers for whole in layer.wholes()]
        torch._foreach_copy_(copies, wholes)

    def __call__(self, tokens: DeviceTokens, depths: Sequence[int]) -> list[Tensor] | None:
        """tokens -> hidden states [total, width] at each depth, the last of them the full one, in
        half precision; None if a row is too long."""
        encoder = self.encoder
        if not 0 < tokens.longest <= LONGEST:
            return None
        span = -(-tokens.longest // 8) * 8
        relative = encoder.relative_bias(span) if encoder.relative_bias is not None else None
        # Backward adds its gradient itself; it only makes autograd call backward.
        anchor = next(parameter for parameter in encoder.parameters() if parameter.requires_grad)
        states: tuple[Tensor, ...] = _Forward.apply(  # type: ignore[no-untyped-call]
            self, tokens, tuple(depths), relative, anchor
        )
        return list(states)


class _HalfLayer:
    """A layer, and half-precision copies of what its matrix products read."""

    def __init__(self, layer: Layer, dtype: torch.dtype) -> None:
        self.layer = layer
        self.copies = [torch.empty_like(whole, dtype=dtype) for whole in self.wholes()]
        self.qkv, self.qkv_bias, self.output, self.expand, self.contract = self.copies

    def wholes(self) -> list[Tensor]:
        """What the copies are of, in their order."""
        attention, forward = self.layer.attention, self.layer.feed_forward
        return [
            *(attention.qkv.weight, attention.qkv.bias, attention.output.weight),
            *(forward.expand.weight, forward.contract.weight),
        ]


@dataclass(slots=True)
class _Activations:
    """What a layer's backward needs of its forward."""

    hidden: Tensor
    qkv: Tensor
    mixed: Tensor
    attended: Norm
    expanded: Tensor
    activated: Tensor
    contracted: Norm


class _Forward(torch.autograd.Function):
    """All layers as one operation; only the relative bias gets its gradient from it."""

    @staticmethod
    def forward(
        ctx: Any,
        fused: FusedEncoder,
        tokens: DeviceTokens,
        depths: tuple[int, ...],
        relative: Tensor | None,
        anchor: Tensor,
    ) -> tuple[Tensor, ...]:
        run = _Run(fused, Launches(fused.encoder, tokens, relative))
        ctx.run, ctx.depths = run, depths
        return run.forward(depths)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None, Tensor | None, None]:
        run: _Run = ctx.run
        del ctx.run
        by_depth = dict(zip(ctx.depths, grads, strict=True))
        return None, None, None, run.backward(by_depth), None


class _Run:
    """One forward and its backward."""

    def __init__(self, fused: FusedEncoder, launches: Launches) -> None:
        self.encoder = fused.encoder
        self.layers = fused.layers
        self.dtype = fused.dtype
        self.launches = launches
        self.activations: list[_Activations] = []

    def forward(self, depths: Sequence[int]) -> tuple[Tensor, ...]:
        self.embedded = self.launches.embed(self.dtype)
        hidden, states = self.embedded.out, []
        for number in range(len(self.layers)):
            hidden = self._layer(number, hidden)
            if number + 1 in depths:
                states.append(hidden)
        return tuple(states)

    def backward(self, grads: Mapping[int, Tensor]) -> Tensor | None:
        """grads: of the hidden states [total, width] by depth, the full one among them"""
        lowest = self._lowest_that_trains()
        deepest = len(self.layers)
        grad = grads[deepest].contiguous()
        for number in reversed(range(lowest, deepest)):
            if number + 1 < deepest and number + 1 in grads:
                grad = grad + grads[number + 1]
            grad = self._layer_backward(number, grad, last=number == lowest and lowest > 0)
        if not lowest and _trains(self.encoder.embeddings.words):
            self.launches.embed_backward(grad, self.embedded)
        return self.launches.d_relative

    def _lowest_that_trains(self) -> int:
        """The layer at which backward may stop: nothing below it trains."""
        if _trains(self.encoder.embeddings) or self.launches.d_relative is not None:
            return 0
        return next(number for number, layer in enumerate(self.layers) if _trains(layer.layer))

    def _layer(self, number: int, hidden: Tensor) -> Tensor:
        half, launches = self.layers[number], self.launches
        layer = half.layer
        attention, forward = layer.attention, layer.feed_forward
        qkv = torch.addmm(half.qkv_bias, hidden, half.qkv.t())
        mixed = launches.attend(number, qkv)
        attended = launches.residual_norm(
            launches.site(number, 1),
            torch.mm(mixed, half.output.t()),
            hidden,
            attention.output,
            layer.attention_norm,
        )
        expanded = torch.mm(attended.out, half.expand.t())
        activated = gelu(expanded, forward.expand.bias)
        contracted = launches.residual_norm(
            launches.site(number, 2),
            torch.mm(activated, half.contract.t()),
            attended.out,
            forward.contract,
            layer.feed_forward_norm,
        )
        self.activations.append(
            _Activations(hidden, qkv, mixed, attended, expanded, activated, contracted)
        )
        return contracted.out

    def _layer_backward(self, number: int, grad: Tensor, *, last: bool) -> Tensor:
        """The gradient after a layer [total, width] -> before it; not computed for the `last`."""
        half, launches, saved = self.layers[number], self.launches, self.activations.pop()
        layer = half.layer
        attention, forward = layer.attention, layer.feed_forward
        d_residual, grad = launches.residual_norm_backward(
            launches.site(number, 2),
            grad,
            saved.contracted,
            forward.contract,
            layer.feed_forward_norm,
        )
        _accumulate(forward.contract.weight, grad, saved.activated)
        grad = gelu_backward(torch.mm(grad, half.contract), saved.expanded, forward.expand)
        _accumulate(forward.expand.weight, grad, saved.attended.out)
        grad = torch.addmm(d_residual, grad, half.expand)
        d_residual, grad = launches.residual_norm_backward(
            launches.site(number, 1), grad, saved.attended, attention.output, layer.attention_norm
        )
        _accumulate(attention.output.weight, grad, saved.mixed)
        grad = torch.mm(grad, half.output)
        grad = launches.attend_backward(number, grad, saved.qkv, attention.qkv)
        _accumulate(attention.qkv.weight, grad, saved.hidden)
        return grad if last else torch.addmm(d_residual, grad, half.qkv)


def _accumulate(weight: Tensor, grad: Tensor, inputs: Tensor) -> None:
    """Add the gradient of a matrix, grad [total, out] by inputs [total, in], in float32."""
    # Outlines (`nn.compiling`) have no numbers, and not every torch knows the product's shape.
    if not weight.requires_grad or weight.is_meta:
        return
    assert weight.grad is not None
    if grad.dtype == torch.float32:
        weight.grad.addmm_(grad.t(), inputs)
        return
    torch.addmm(weight.grad, grad.t(), inputs, out_dtype=torch.float32, out=weight.grad)


def _trains(module: nn.Module) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())
