"""Linear layers through oneDNN, for CPUs on which MKL, torch's default, is slower."""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import torch
from torch import Tensor, nn

from tercet.cores import is_amd

ROWS = 512
"""Tokens for which weights are packed; products of fewer and of more read the same packing."""


class PackedLinear(nn.Linear):
    """A linear layer with a second copy of its weights, packed for products without gradients.

    Whatever else it is asked for (gradients, bf16, weights that were replaced) is computed as any
    linear layer does.
    """

    _packed: Tensor | None = None
    _state: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, linear: nn.Linear) -> PackedLinear:
        """The layer with the same parameters."""
        packed = cls(
            linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta"
        )
        packed.weight, packed.bias = linear.weight, linear.bias
        packed.training = linear.training
        packed._pack()
        return packed

    def forward(self, inputs: Tensor) -> Tensor:
        if self._is_current() and _is_plain(inputs):
            product: Tensor = torch.ops.mkldnn._linear_pointwise(
                inputs, self._packed, self.bias, "none", [], ""
            )
            return product
        return super().forward(inputs)

    def train(self, mode: bool = True) -> Self:
        if mode:  # its weights may change from now on
            self._packed = None
        return super().train(mode)

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

    def _pack(self) -> None:
        with torch.inference_mode():
            self._packed = torch.ops.mkldnn._reorder_linear_weight(
                self.weight.detach().contiguous(), ROWS
            )
        self._state = _state_of(self.weight)

    def _is_current(self) -> bool:
        return self._packed is not None and _state_of(self.weight) == self._state


def is_worth_packing() -> bool:
    """Whether products with packed weights are faster on this machine, and torch has them.

    On AMD CPUs they are, by a tenth for many tokens and a third for few; on Intel's by little.
    """
    return is_amd() and _has_operators()


def pack(module: nn.Module) -> None:
    """Pack the weights of all linear layers; values, shapes and names do not change."""
    for part in list(module.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.Linear) and _can_pack(child):
                setattr(part, name, PackedLinear.of(child))


def _can_pack(linear: nn.Linear) -> bool:
    """Another subclass of torch's own layer may compute something else."""
    known = type(linear) in (nn.Linear, PackedLinear)
    return known and linear.weight.dtype == torch.float32 and linear.weight.device.type == "cpu"


def _state_of(weight: Tensor) -> tuple[int, int]:
    """What changes with a tensor's memory or its values."""
    return weight.data_ptr(), -1 if weight.is_inference() else weight._version


def _is_plain(inputs: Tensor) -> bool:
    exact = inputs.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    return exact and not torch.is_grad_enabled() and inputs.numel() > 0


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
