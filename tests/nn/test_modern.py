"""ModernBERT's rotary positions and gates: the same with gradients, in place without, and where
kernels compute them."""

from __future__ import annotations

import pytest
import torch

from tercet.nn import attention, modern
from tercet.nn.architectures.modernbert import ModernbertConfig
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.modern import GatedFeedForward, turn

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_turning_in_place_equals_turning_with_gradients(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    qkv = torch.randn(7, 3, 2, 8).to(dtype)
    angles = torch.randn(7, 4)[:, None, None]
    expected = turn(qkv, angles.cos(), angles.sin())
    assert not torch.equal(expected[:, :2], qkv[:, :2])
    assert torch.equal(expected[:, 2], qkv[:, 2])
    with torch.inference_mode():
        given = qkv.clone()
        found = turn(given, angles.cos(), angles.sin())
    assert found.data_ptr() == given.data_ptr()
    torch.testing.assert_close(found, expected)


def test_turning_keeps_lengths_and_what_two_tokens_have_in_common() -> None:
    torch.manual_seed(0)
    qkv, rates = torch.randn(1, 3, 1, 8).expand(6, 3, 1, 8).clone(), torch.rand(4)
    angles = (torch.arange(6.0)[:, None] * rates)[:, None, None]
    query, key = turn(qkv, angles.cos(), angles.sin())[:, :2, 0].unbind(1)
    torch.testing.assert_close(query.norm(dim=-1), qkv[:, 0, 0].norm(dim=-1))
    scores = query @ key.T
    # A product depends on the distance of two tokens alone.
    for distance in range(-5, 6):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


def test_the_kernel_turns_as_the_plain_operators_do() -> None:
    launches = pytest.importorskip("tercet.nn.launches")
    torch.manual_seed(0)
    qkv = torch.randn(37, 3, 3, 32, device=DEVICE)
    angles = torch.randn(37, 16, device=DEVICE)[:, None, None]
    expected = turn(qkv, angles.cos(), angles.sin())
    given = qkv.clone()
    found = launches.turn(given, angles.cos(), angles.sin())
    assert found.data_ptr() == given.data_ptr()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_the_kernel_gates_as_the_plain_operators_do() -> None:
    launches = pytest.importorskip("tercet.nn.launches")
    torch.manual_seed(0)
    expanded = torch.randn(37, 2 * 72, device=DEVICE)
    activated, gate = expanded.chunk(2, dim=-1)
    expected = torch.nn.functional.gelu(activated) * gate
    given = expanded.clone()
    found = launches.gate_gelu(given)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    assert torch.equal(given[:, 72:], gate)


@pytest.mark.parametrize(
    ("tokens", "dtype", "inference", "taken"),
    [(8192, torch.bfloat16, True, True), (8191, torch.bfloat16, True, False)]
    + [(8192, torch.float32, True, False), (8192, torch.bfloat16, False, False)],
)
def test_large_batches_in_inference_take_the_kernels(
    monkeypatch, tokens: int, dtype: torch.dtype, inference: bool, taken: bool
) -> None:
    launches = pytest.importorskip("tercet.nn.launches")
    monkeypatch.setattr(attention, "_can_compile", lambda device: True)
    launched = []

    def turned(qkv: torch.Tensor, *angles: torch.Tensor) -> torch.Tensor:
        launched.append("turn")
        return qkv

    def gated(expanded: torch.Tensor) -> torch.Tensor:
        launched.append("gate")
        return expanded.chunk(2, dim=-1)[0]

    monkeypatch.setattr(launches, "turn", turned)
    monkeypatch.setattr(launches, "gate_gelu", gated)
    layers = {"layers": 1, "width": 16, "heads": 1, "feed_forward": 8}
    config = ModernbertConfig(vocabulary=9, **layers)
    forward = GatedFeedForward(config).to(dtype)
    with torch.inference_mode(inference):
        qkv, angles = torch.zeros(tokens, 3, 1, 16, dtype=dtype), torch.zeros(tokens, 1, 1, 8)
        turn(qkv, angles, angles)
        forward.forward(torch.zeros(tokens, 16, dtype=dtype))
    assert launched == (["turn", "gate"] if taken else [])


@needs_cuda
def test_an_encoder_with_the_kernels_gives_the_same_in_bf16(make_tokens, monkeypatch) -> None:
    torch.manual_seed(0)
    layers = {"layers": 3, "width": 64, "heads": 2, "feed_forward": 96}
    encoder = Encoder(ModernbertConfig(vocabulary=99, **layers)).to(DEVICE, torch.bfloat16).eval()
    rows = torch.randint(0, 99, (9000,)).split([1 + number % 90 for number in range(195)] + [690])
    tokens = DeviceTokens.from_host(make_tokens([row.tolist() for row in rows]), DEVICE)
    launches = pytest.importorskip("tercet.nn.launches")
    turned = []
    kernel = launches.turn

    def noted(*arguments: torch.Tensor) -> torch.Tensor:
        turned.append(len(arguments[0]))
        return kernel(*arguments)

    monkeypatch.setattr(launches, "turn", noted)
    with torch.inference_mode():
        found = encoder.forward(tokens)
        assert turned == [9000] * 3
        monkeypatch.setattr(modern, "is_worth_a_kernel", lambda *_: False)
        expected = encoder.forward(tokens)
    assert turned == [9000] * 3
    # Hidden states are normed; bf16 has eight bits.
    torch.testing.assert_close(found.float(), expected.float(), atol=0.05, rtol=0.02)
