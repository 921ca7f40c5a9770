"""A network whose encoder computes in bf16, for inference, and where that is usual."""

from __future__ import annotations

import os
from copy import copy, deepcopy
from typing import Any, TypeVar, cast, get_args

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.infer.base import Precision
from tercet.network.network import Network
from tercet.nn.onednn import cpu_has

Part = TypeVar("Part", bound=nn.Module)

PRECISION = "TERCET_PRECISION"
"""The environment variable that sets the usual precision, for commands too."""


def usual_precision(device: torch.device) -> Precision:
    """What the environment says; else bf16 on GPUs that compute in it, fp32 elsewhere."""
    chosen = os.environ.get(PRECISION)
    if chosen:
        if chosen not in get_args(Precision):
            raise TercetError(f"{PRECISION} is {chosen!r}; it is fp32 or bf16.")
        return cast(Precision, chosen)
    has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if has_bf16 else "fp32"


def is_worth_half(device: torch.device) -> bool:
    """Whether bf16 is several times as fast: on GPUs that compute in it, and on CPUs that multiply
    tiles of it (Intel's AMX). These keep fp32 unless told, for vectors equal to other CPUs'."""
    if device.type == "cpu":
        return cpu_has("amx_bf16")
    return usual_precision(device) == "bf16"


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
