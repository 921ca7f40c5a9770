"""Fingerprints of weights: which ones a training started from."""

from __future__ import annotations

import hashlib

import torch
from torch import nn

_DIGITS = 12


def fingerprint(encoder: nn.Module) -> str:
    """The first digits of the sha256 of all weights in half precision.

    A half-precision copy has the same fingerprint as its source; any further training changes it.
    """
    digest = hashlib.sha256()
    for name, weight in sorted(encoder.named_parameters()):
        digest.update(f"{name} {list(weight.shape)}".encode())
        half = weight.detach().to("cpu", torch.float16).contiguous()
        digest.update(half.view(torch.uint8).numpy().data)
    return digest.hexdigest()[:_DIGITS]
