"""Every architecture on a GPU: the same hidden states and gradients as on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tercet.nn.architectures.modernbert import ModernbertConfig
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.folder import load_encoder
from tercet.text.tokens import Tokens

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
LENGTHS = [5, 1, 17, 40, 5, 3, 64, 33, 9]


def ragged(lengths: list[int], *, vocabulary: int) -> Tokens:
    ids = np.random.default_rng(0).integers(5, vocabulary, sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(ids, np.zeros_like(ids), offsets, longest=max(lengths), truncated=0)


def run(encoder: Encoder, tokens: Tokens, device: torch.device, *, bf16: bool) -> Any:
    """Hidden states, and the gradient of the words."""
    encoder = encoder.to(device)
    encoder.zero_grad()
    with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        hidden = encoder(DeviceTokens.from_host(tokens, device))
    # Against numbers of its own: norms make the squares of hidden states sum to a constant.
    weights = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0))
    (hidden.float() * weights.to(device)).sum().backward()
    # A copy: moving the encoder to another device moves its gradients along.
    gradient = encoder.embeddings.words.weight.grad.clone()
    return hidden.detach().float().cpu(), gradient.cpu()


def assert_near(encoder: Encoder, tokens: Tokens, *, bf16: bool) -> None:
    hidden, gradient = run(encoder, tokens, CPU, bf16=False)
    found, slope = run(encoder, tokens, CUDA, bf16=bf16)
    tolerance = 0.03 if bf16 else 1e-3
    assert (found - hidden).norm() <= tolerance * hidden.norm()
    assert (slope - gradient).norm() <= 3 * tolerance * gradient.norm()


@pytest.mark.parametrize("bf16", [False, True])
def test_a_gpu_agrees_with_the_cpu(family: Path, bf16: bool) -> None:
    encoder = load_encoder(family, dropout=0.0, attention_dropout=0.0)
    assert_near(encoder, ragged(LENGTHS, vocabulary=encoder.config.vocabulary), bf16=bf16)


@pytest.mark.parametrize("bf16", [False, True])
def test_sliding_windows_agree_on_long_rows(bf16: bool) -> None:
    shape = {"vocabulary": 100, "width": 64, "layers": 3, "heads": 2, "feed_forward": 64}
    encoder = Encoder(ModernbertConfig(**shape, window=16))
    assert_near(encoder, ragged([300, 7, 130, 129, 1], vocabulary=100), bf16=bf16)
