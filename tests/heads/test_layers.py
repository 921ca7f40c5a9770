from __future__ import annotations

import itertools
from pathlib import Path

import torch

from tercet.heads.layers import LayersHead
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.folder import load_encoder
from tercet.text.tokenizer import Tokenizer

TEXTS = ["a fine film", "no", "how do i learn the guitar on a rainy day?", "a dull one"]


def test_layers_on_hidden_states_go_on_as_the_encoders_own_would(tiny_encoder: Path) -> None:
    """The encoder's layers, run once more by the head, against the encoder run on its output."""
    encoder = load_encoder(tiny_encoder, dropout=0.0, attention_dropout=0.0).eval()
    config = encoder.config
    head = LayersHead(width=config.width, outputs=3, config=config, layers=2, dropout=0.0).eval()
    head.layers.load_state_dict(encoder.layers.state_dict())
    host = Tokenizer.load(tiny_encoder).encode(TEXTS, max_tokens=20)
    tokens = DeviceTokens.from_host(host, torch.device("cpu"))
    hidden = encoder(tokens)
    raw = head(hidden, tokens)
    bounds = tokens.offsets.tolist()
    for row, (begin, end) in enumerate(itertools.pairwise(bounds)):
        alone = DeviceTokens.from_host(
            Tokenizer.load(tiny_encoder).encode([TEXTS[row]], max_tokens=20), torch.device("cpu")
        )
        expected = head(hidden[begin:end], alone)
        torch.testing.assert_close(raw[row : row + 1], expected)
    assert raw.shape == (4, 3)


def test_no_layers_but_the_linear_one_reads_the_first_token(tiny_encoder: Path) -> None:
    encoder = load_encoder(tiny_encoder, dropout=0.0, attention_dropout=0.0).eval()
    config = encoder.config
    head = LayersHead(width=config.width, outputs=2, config=config, layers=0, dropout=0.0).eval()
    host = Tokenizer.load(tiny_encoder).encode(TEXTS, max_tokens=20)
    tokens = DeviceTokens.from_host(host, torch.device("cpu"))
    hidden = encoder(tokens)
    expected = head.final(hidden[tokens.offsets[:-1].long()])
    torch.testing.assert_close(head(hidden, tokens), expected)


def test_the_heads_layers_are_those_of_transformers(tiny_encoder: Path) -> None:
    from transformers import BertModel

    peer = BertModel.from_pretrained(tiny_encoder).eval()
    encoder = load_encoder(tiny_encoder, dropout=0.0, attention_dropout=0.0).eval()
    config = encoder.config
    head = LayersHead(width=config.width, outputs=2, config=config, layers=2, dropout=0.0).eval()
    head.layers.load_state_dict(encoder.layers.state_dict())
    host = Tokenizer.load(tiny_encoder).encode(TEXTS[2:3], max_tokens=20)
    tokens = DeviceTokens.from_host(host, torch.device("cpu"))
    hidden = encoder(tokens)
    twice = peer.encoder(hidden[None]).last_hidden_state[0]
    torch.testing.assert_close(head(hidden, tokens)[0], head.final(twice[0]), rtol=1e-4, atol=1e-5)
