"""Side weights: zero at first, equal to a merged encoder, and never in the fused layers' way."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch

from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.folder import load_encoder
from tercet.nn.side import SideWeights
from tercet.text.tokenizer import Tokenizer

CPU = torch.device("cpu")


@pytest.fixture(params=["tiny_encoder", "tiny_mpnet"])
def tiny(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


@pytest.fixture
def encoder(tiny: Path) -> Encoder:
    return load_encoder(tiny).eval()


@pytest.fixture
def tokens(tiny: Path, sentences: list[str]) -> DeviceTokens:
    tokenizer = Tokenizer.load(tiny)
    pieces = tokenizer.pieces(sentences, limit=40)
    return DeviceTokens.from_host(tokenizer.template.single(pieces, max_tokens=40), CPU)


def random_side(encoder: Encoder, **options: object) -> SideWeights:
    torch.manual_seed(1)
    side = SideWeights(encoder.config, rank=3, **options)  # type: ignore[arg-type]
    for parameter in side.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return side


def merged(encoder: Encoder, side: SideWeights) -> Encoder:
    """The encoder with the products added to its own weights."""
    whole = deepcopy(encoder)
    for number, added in side.layers.items():
        layer = whole.layers[int(number)]
        pairs = [
            (layer.attention.qkv, added.qkv),
            (layer.attention.output, added.output),
            (layer.feed_forward.expand, added.expand),
            (layer.feed_forward.contract, added.contract),
        ]
        for linear, low_rank in pairs:
            linear.weight.data += low_rank.up @ low_rank.down
    return whole


@torch.no_grad()
@pytest.mark.parametrize("layers", [None, [1]])
def test_side_weights_equal_a_merged_encoder(encoder, tokens, layers) -> None:
    side = random_side(encoder, layers=layers)
    expected = merged(encoder, side)(tokens)
    assert torch.allclose(encoder(tokens, side), expected, atol=1e-5)
    assert not torch.allclose(encoder(tokens), expected, atol=1e-2)


@torch.no_grad()
def test_new_side_weights_change_nothing(encoder, tokens) -> None:
    assert torch.equal(encoder(tokens, SideWeights(encoder.config, rank=4)), encoder(tokens))


def test_side_weights_train_while_the_encoder_is_frozen(encoder, tokens) -> None:
    encoder.requires_grad_(False)
    side = random_side(encoder)
    encoder(tokens, side).square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in side.parameters())


@torch.no_grad()
def test_layers_that_replace_the_plain_ones_are_not_given_side_weights(encoder, tokens) -> None:
    side = random_side(encoder)
    plain = encoder(tokens, side)
    with encoder.replaced(lambda tokens, depths: [torch.zeros(1)]):
        assert encoder(tokens).shape == (1,)
        assert torch.equal(encoder(tokens, side), plain)


def test_a_layer_that_the_encoder_lacks_is_named(encoder) -> None:
    with pytest.raises(TercetError, match=r"names layer 2; .* from 0 to 1"):
        SideWeights(encoder.config, rank=2, layers=[0, 2])
