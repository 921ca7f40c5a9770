"""The fused layers against the plain ones: run by Triton's interpreter where there is no GPU."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.nn.architectures.record import ARCHITECTURES
from tercet.nn.device_tokens import DeviceTokens, PackedTokens
from tercet.nn.encoder import Encoder
from tercet.nn.plan import one_block
from tercet.text.tokens import Tokens

pytest.importorskip("triton")
from tercet.nn.fused import FusedEncoder, is_fused

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LENGTHS = [3, 1, 33, 17]
# A GPU multiplies in TF32, with ten bits after the point instead of 23.
ON_GPU = DEVICE.type == "cuda"
NEAR = 5e-3 if ON_GPU else 1e-3
# Such rounding drowns a small difference of two losses: longer steps, over many directions.
STEP, DIRECTIONS = (5e-3, 200) if ON_GPU else (1e-3, 1)


# One token type for all tokens; embeddings as wide as the layers.
OWN: dict[str, dict[str, int | None]] = {
    "roberta": {"token_types": 1},
    "electra": {"embedding_width": None},
}


def make_encoder(architecture: str, *, dropout: float = 0.0) -> Encoder:
    torch.manual_seed(0)
    encoder = Encoder(
        ARCHITECTURES[architecture].config(
            vocabulary=40,
            width=32,
            layers=2,
            heads=2,
            feed_forward=48,
            positions=64,
            norm_eps=1e-6,
            dropout=dropout,
            attention_dropout=dropout,
            pooler=False,
            **OWN.get(architecture, {}),
        )
    ).to(DEVICE)
    for parameter in encoder.parameters():
        # Nothing may be hidden by weights that are 0 or 1.
        torch.nn.init.normal_(parameter, mean=0.5 if parameter.ndim == 1 else 0.0, std=0.3)
    return encoder.train()


def make_tokens(lengths: list[int]) -> DeviceTokens:
    generator = np.random.default_rng(1)
    total = sum(lengths)
    tokens = Tokens(
        ids=generator.integers(3, 40, total, dtype=np.int32),
        types=generator.integers(0, 2, total, dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        longest=max(lengths),
        truncated=0,
    )
    length = -(-max(lengths) // 8) * 8
    plan = one_block(np.array(lengths), length=length)
    packed = PackedTokens.pack(tokens, plan, used=len(lengths), pinned=False)
    return packed.unpack(packed.buffer.to(DEVICE))


def clear(encoder: Encoder) -> None:
    for parameter in encoder.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None


def last(layers: FusedEncoder, tokens: DeviceTokens) -> Tensor:
    """The hidden states after the last layer [total, width]."""
    states = layers(tokens, [len(layers.layers)])
    assert states is not None
    return states[0]


def run(forward: FusedEncoder | Encoder, tokens: DeviceTokens, weights: Tensor) -> Tensor:
    """A forward and backward; the hidden states [total, width]."""
    hidden = last(forward, tokens) if isinstance(forward, FusedEncoder) else forward(tokens)
    torch.autograd.backward((hidden.float() * weights).sum())
    return hidden.detach()


def gradients(encoder: Encoder) -> dict[str, Tensor]:
    return {
        name: parameter.grad.clone()
        for name, parameter in encoder.named_parameters()
        if parameter.grad is not None
    }


@pytest.mark.parametrize("architecture", ["bert", "mpnet", "roberta", "distilbert", "electra"])
def test_hidden_states_and_gradients_are_those_of_the_plain_layers(architecture: str) -> None:
    encoder, tokens = make_encoder(architecture), make_tokens(LENGTHS)
    weights = torch.randn(sum(LENGTHS), 32, device=DEVICE)
    clear(encoder)
    expected, plain = run(encoder, tokens, weights), gradients(encoder)
    clear(encoder)
    hidden = run(FusedEncoder(encoder, dtype=torch.float32), tokens, weights)
    torch.testing.assert_close(hidden, expected, rtol=NEAR, atol=NEAR if ON_GPU else 1e-4)
    for name, gradient in gradients(encoder).items():
        scale = plain[name].abs().max()
        torch.testing.assert_close(gradient / scale, plain[name] / scale, rtol=0, atol=NEAR)


def test_gradients_are_added_to_what_is_there() -> None:
    encoder, tokens = make_encoder("bert"), make_tokens([3, 5])
    weights = torch.randn(8, 32, device=DEVICE)
    layers = FusedEncoder(encoder, dtype=torch.float32)
    clear(encoder)
    run(layers, tokens, weights)
    once = gradients(encoder)
    run(layers, tokens, weights)
    for name, gradient in gradients(encoder).items():
        torch.testing.assert_close(gradient, 2 * once[name], rtol=1e-4, atol=1e-4)


def test_backward_drops_what_forward_dropped() -> None:
    """With the same draws, the gradient is the slope of the loss."""
    encoder, tokens = make_encoder("bert", dropout=0.3), make_tokens([5, 2, 9])
    layers = FusedEncoder(encoder, dtype=torch.float32)
    weights = torch.randn(16, 32, device=DEVICE)

    def loss() -> Tensor:
        torch.manual_seed(5)
        return (last(layers, tokens) * weights).sum()

    # `loss` sets the seed of torch's own generator, after which directions would all be the same.
    generator = torch.Generator(DEVICE).manual_seed(1)
    clear(encoder)
    torch.autograd.backward(loss())
    for name in ("layers.0.attention.qkv.weight", "layers.1.feed_forward.expand.bias"):
        parameter = encoder.get_parameter(name)
        assert parameter.grad is not None
        measured, slopes = [], []
        for _ in range(DIRECTIONS):
            direction = torch.randn(parameter.shape, generator=generator, device=DEVICE)
            ends = []
            for step in (STEP, -2 * STEP):
                with torch.no_grad():
                    parameter += step * direction
                layers.refresh()
                ends.append(loss().item())
            with torch.no_grad():
                parameter += STEP * direction
            layers.refresh()
            measured.append((ends[0] - ends[1]) / (2 * STEP))
            slopes.append((parameter.grad * direction).sum().item())
        # The factor by which the gradient explains what was measured, by least squares.
        assert abs(np.dot(measured, slopes) / np.dot(slopes, slopes) - 1.0) < 0.02


def test_other_draws_drop_other_values_and_none_does_without_training() -> None:
    encoder, tokens = make_encoder("bert", dropout=0.5), make_tokens([4, 4])
    layers = FusedEncoder(encoder, dtype=torch.float32)
    assert not torch.equal(last(layers, tokens), last(layers, tokens))
    encoder.eval()
    assert torch.equal(last(layers, tokens), last(layers, tokens))


def test_frozen_layers_get_no_gradient_and_pass_it_on() -> None:
    encoder, tokens = make_encoder("bert"), make_tokens([3, 5])
    encoder.layers[1].requires_grad_(False)
    encoder.embeddings.requires_grad_(False)
    weights = torch.randn(8, 32, device=DEVICE)
    clear(encoder)
    run(encoder, tokens, weights)
    plain = gradients(encoder)
    clear(encoder)
    run(FusedEncoder(encoder, dtype=torch.float32), tokens, weights)
    result = gradients(encoder)
    assert result.keys() == {name for name in result if name.startswith("layers.0.")}
    for name, gradient in result.items():
        scale = plain[name].abs().max()
        torch.testing.assert_close(gradient / scale, plain[name] / scale, rtol=0, atol=NEAR)


def test_rows_that_are_too_long_are_left_to_the_plain_layers() -> None:
    encoder = make_encoder("bert")
    assert FusedEncoder(encoder, dtype=torch.float32)(make_tokens([3, 129]), [2]) is None


@pytest.mark.parametrize("frozen", [False, True])
def test_several_depths_give_the_states_and_gradients_of_the_plain_layers(frozen: bool) -> None:
    encoder, tokens = make_encoder("bert"), make_tokens(LENGTHS)
    encoder.embeddings.requires_grad_(not frozen)
    weights = torch.randn(2, sum(LENGTHS), 32, device=DEVICE)
    results = []
    for forward in (None, FusedEncoder(encoder, dtype=torch.float32)):
        clear(encoder)
        with encoder.replaced(forward) if forward is not None else nullcontext():
            states = torch.stack(encoder.states(tokens, depths=[1, 2]))
        torch.autograd.backward((states.float() * weights).sum())
        results.append((states.detach(), gradients(encoder)))
    (expected, plain), (states, found) = results
    torch.testing.assert_close(states, expected, rtol=NEAR, atol=NEAR if ON_GPU else 1e-4)
    assert found.keys() == plain.keys()
    for name, gradient in found.items():
        scale = plain[name].abs().max()
        torch.testing.assert_close(gradient / scale, plain[name] / scale, rtol=0, atol=NEAR)


def test_an_encoder_that_does_not_train_has_no_fused_layers() -> None:
    assert is_fused(make_encoder("bert"))
    assert not is_fused(make_encoder("bert").requires_grad_(False))
