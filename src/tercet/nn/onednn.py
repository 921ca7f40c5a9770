"""Linear layers through oneDNN, for CPUs on which MKL, torch's default, is slower."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tercet.cores import amd_family

ROWS = 512
"""Tokens for which weights are packed; products of fewer and of more read the same packing."""
ZEN_5 = 26
"""The first family of AMD's CPUs with vector units of 512 bits, of which MKL uses half."""


class OneDnnLinear(nn.Linear):
    """A linear layer whose products in full precision are oneDNN's, with gradients or without.

    Whatever else it is asked for, such as bf16 or another device, is computed as any linear layer
    does.
    """

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """The layer with the same parameters."""
        made = cls(
            linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta"
        )
        made.weight, made.bias = linear.weight, linear.bias
        made.training = linear.training
        return made

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs [..., in] -> [..., out]"""
        if not _is_exact(inputs):
            return super().forward(inputs)
        product: Tensor = _Product.apply(  # type: ignore[no-untyped-call]
            inputs, self.weight, self.bias
        )
        return product

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Linear:
        """A plain layer: copies are made to be changed."""
        copied = nn.Linear(
            self.in_features, self.out_features, bias=self.bias is not None, device="meta"
        )
        for name, parameter in self._parameters.items():
            if parameter is not None:
                setattr(copied, name, nn.Parameter(parameter.detach().clone()))
                getattr(copied, name).requires_grad = parameter.requires_grad
        memo[id(self)] = copied
        return copied.train(self.training)


class PackedLinear(OneDnnLinear):
    """The same with a second copy of the weights, packed for products without gradients; not read
    once the weights have changed."""

    _packed: Tensor | None = None
    _state: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        made = super().of(linear)
        made._pack()
        return made

    def forward(self, inputs: Tensor) -> Tensor:
        if self._is_current() and _is_exact(inputs) and not torch.is_grad_enabled():
            assert self._packed is not None
            return _multiply(inputs, self._packed, self.bias)
        return super().forward(inputs)

    def train(self, mode: bool = True) -> Self:
        if mode:  # its weights may change from now on
            self._packed = None
        return super().train(mode)

    def _pack(self) -> None:
        with torch.inference_mode():
            self._packed = torch.ops.mkldnn._reorder_linear_weight(
                self.weight.detach().contiguous(), ROWS
            )
        self._state = _state_of(self.weight)

    def _is_current(self) -> bool:
        return self._packed is not None and _state_of(self.weight) == self._state


class _Product(torch.autograd.Function):
    """inputs [..., in], weight [out, in], bias [out] or None -> [..., out]"""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return _multiply(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        gradient = gradients[0].reshape(-1, len(weight)).contiguous()
        of_inputs, of_weight, of_bias = ctx.needs_input_grad
        return (
            _multiply(gradient, weight.t()).view(inputs.shape) if of_inputs else None,
            _multiply(gradient.t(), inputs.reshape(-1, weight.shape[1]).t()) if of_weight else None,
            gradient.sum(0) if of_bias else None,
        )


def is_worth_packing() -> bool:
    """Whether products with packed weights are faster on this machine, and torch has them.

    On AMD CPUs they are, by a tenth for many tokens and a third for few, and much more since
    Zen 5; on Intel's by little.
    """
    return amd_family() is not None and _has_operators()


def is_worth_training() -> bool:
    """Whether products with gradients are faster too: since Zen 5 by half or more, each of the
    three of a step. On older CPUs those of the backward pass are slower."""
    return (amd_family() or 0) >= ZEN_5 and _has_operators()


def cpu_has(*instructions: str) -> bool:
    """Whether the CPU has any of these, by torch's names, such as `amx_bf16`."""
    # Empty where this torch cannot tell.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in instructions)


def replace_linear(module: nn.Module, make: Callable[[nn.Linear], nn.Linear]) -> None:
    """Replace all linear layers in full precision; values, shapes and names do not change."""
    for part in list(module.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.Linear) and _can_replace(child):
                setattr(part, name, make(child))


def _can_replace(linear: nn.Linear) -> bool:
    """Another subclass of torch's own layer may compute something else."""
    known = type(linear) in (nn.Linear, OneDnnLinear, PackedLinear)
    return known and linear.weight.dtype == torch.float32 and linear.weight.device.type == "cpu"


def _multiply(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """inputs [..., in], weight [out, in], packed or not -> [..., out]"""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return product


def _state_of(weight: Tensor) -> tuple[int, int]:
    """What changes with a tensor's memory or its values."""
    return weight.data_ptr(), -1 if weight.is_inference() else weight._version


def _is_exact(inputs: Tensor) -> bool:
    """Whether there is something to multiply, in full precision, on the CPU."""
    exact = inputs.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return exact and inputs.device.type == "cpu" and inputs.numel() > 0


@cache
def _has_operators() -> bool:
    """Whether this torch has the private operators with the arguments that are passed here."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    operators = torch.ops.mkldnn
    if not all(
        hasattr(operators, name) for name in ("_linear_pointwise", "_reorder_linear_weight")
    ):
        return False
    names = [argument.name for argument in operators._linear_pointwise.default._schema.arguments]
    return len(names) == 6
