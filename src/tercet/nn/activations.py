"""The activations that heads and shared layers may have."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
}
