"""The activations that heads and shared layers may have."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from tercet.errors import TercetError

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
}


def activation_of(name: str) -> Callable[[Tensor], Tensor]:
    """The function of a name; another name is an error."""
    if name not in _ACTIVATIONS:
        raise TercetError(f"activation {name!r} is unknown: use {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]
