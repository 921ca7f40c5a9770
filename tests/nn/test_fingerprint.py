from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from tercet import weights
from tercet.nn.fingerprint import fingerprint
from tercet.nn.folder import load_encoder
from tercet.weights import REGISTRY


def test_a_copy_in_half_precision_has_the_same_and_a_trained_one_another(
    tiny_encoder: Path,
) -> None:
    encoder = load_encoder(tiny_encoder)
    before = fingerprint(encoder)
    assert fingerprint(copy.deepcopy(encoder).half()) == before
    trained = copy.deepcopy(encoder)
    with torch.no_grad():
        next(reversed(list(trained.parameters()))).view(-1)[0] += 0.01
    assert fingerprint(trained) != before


def test_the_registry_knows_its_encoders(minilm: Path, mpnet: Path) -> None:
    assert fingerprint(load_encoder(minilm)) == REGISTRY["all-minilm-l6-v2"].fingerprint
    assert fingerprint(load_encoder(mpnet)) == REGISTRY["all-mpnet-base-v2"].fingerprint


@pytest.mark.parametrize("name", ["gte-small", "bge-small-en-v1.5"])
def test_the_registry_knows_its_converted_encoders(name: str) -> None:
    folder = weights.present(name)
    if folder is None:
        pytest.skip(f"no weights of {name} here; run: tercet weights {name}")
    assert fingerprint(load_encoder(folder)) == REGISTRY[name].fingerprint
