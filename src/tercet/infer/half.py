"""A network whose encoder computes in bf16, for inference."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tercet.network.network import Network

Part = TypeVar("Part", bound=nn.Module)


def half_network(network: Network) -> Network:
    """A copy with encoder and side weights in bf16, which returns hidden states in float32.

    The pooler and the heads are those of `network`: grades and probabilities need more digits than
    bf16 has.
    """
    half = copy(network)
    half._modules = dict(network._modules)
    half.encoder = _in_bf16(network.encoder)
    half.encoder.pooler = network.encoder.pooler
    half.encoder.register_forward_hook(_widen)
    half.sides = _in_bf16(network.sides)
    return half


def _in_bf16(part: Part) -> Part:
    """A copy with parameters in bf16; buffers keep the digits that positions of long texts need."""
    copied = deepcopy(part)
    for parameter in copied.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)
    return copied


def _widen(module: nn.Module, inputs: Any, hidden: Tensor) -> Tensor:
    return hidden.float()
