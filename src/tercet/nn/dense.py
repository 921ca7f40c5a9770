"""Linear layers and activations as heads use them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
}


def linear(width: int, outputs: int) -> nn.Linear:
    """A linear layer as BERT initialises it."""
    layer = nn.Linear(width, outputs)
    nn.init.normal_(layer.weight, mean=0.0, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer
