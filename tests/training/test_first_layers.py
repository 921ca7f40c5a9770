"""A run on the first layers of an encoder: what they compute, what is saved, what is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tercet
from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.fingerprint import fingerprint
from tercet.nn.folder import load_encoder
from tercet.recipe import Recipe
from tercet.text.tokenizer import Tokenizer
from tercet.training.listener import Silent
from tercet.training.run import train_recipe


def trained(encoder: Path, data: Path, layers: int) -> Path:
    tree: dict[str, Any] = {
        "name": "mine",
        "summary": "",
        "encoder": {"name": str(encoder), "max_tokens": 24, "layers": layers},
        "tasks": {
            "mood": {
                "data": {"train": "a.csv", "texts": "text", "label": "mood"},
                "labels": ["0", "1"],
                "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
            }
        },
        "stages": [{"steps": 1, "batch": 2, "freeze": ["encoder"]}],
    }
    (data / "a.csv").write_text("text,mood\ngood,1\nbad,0\n", "utf-8")
    recipe = Recipe.from_tree(tree, where="mine")
    train_recipe(recipe, data=data, out=data / "run", device="cpu", listener=Silent())
    return data / "run"


def test_the_first_layers_are_kept_as_they_are(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    run = trained(tiny_encoder, tmp_path, layers=1)
    model = tercet.load(run, device="cpu")
    whole = load_encoder(tiny_encoder).eval()
    assert model.network.encoder.config.layers == len(model.network.encoder.layers) == 1
    tokenizer = Tokenizer.load(tiny_encoder)
    pieces = tokenizer.pieces(["a good film"], limit=24)
    tokens = tokenizer.template.single(pieces, np.array([0]), max_tokens=24)
    seen: list[torch.Tensor] = []
    whole.layers[1].forward = lambda hidden, *rest: seen.append(hidden) or hidden  # type: ignore[method-assign]
    with torch.inference_mode():
        whole(DeviceTokens.from_host(tokens, torch.device("cpu")))
    pooled = seen[0].mean(dim=0)
    expected = (pooled / pooled.norm()).numpy()
    assert np.allclose(model.embed(["a good film"])[0], expected, atol=1e-5)
    summary = (run / "summary.json").read_text("utf-8")
    assert f"{fingerprint(load_encoder(tiny_encoder))}, first 1 layers" in summary


def test_more_layers_than_there_are_is_told(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    with pytest.raises(TercetError, match=r"`encoder.layers` is 3, but .* has only 2 layers"):
        trained(tiny_encoder, tmp_path, layers=3)
