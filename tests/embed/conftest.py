"""Small models that only embed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.text.tokenizer import Tokenizer


def make_model(encoder: Path, *, pooling: str) -> Model:
    network = Network(load_encoder(encoder), pooling=pooling, tasks={})
    info = ModelInfo(encoder="tiny", pooling=pooling, max_tokens=24, tasks={})
    return Model(network, Tokenizer.load(encoder), info)


@pytest.fixture(scope="session")
def plain_model(tiny_encoder: Path) -> Model:
    return make_model(tiny_encoder, pooling="mean")


@pytest.fixture(scope="session")
def other_model(tiny_encoder: Path) -> Model:
    """The same weights, pooled otherwise."""
    return make_model(tiny_encoder, pooling="cls")
