"""What is started beside the preparation of a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tercet.network.network import Network
from tercet.nn.architectures.record import ARCHITECTURES
from tercet.nn.encoder import Encoder
from tercet.recipe import Recipe
from tercet.training.first_step import start_ahead

pytest.importorskip("triton")
from tercet.nn import compiling

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
TASK = {
    "data": {"layout": "cs224n-sst"},
    "labels": ["bad", "good"],
    "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
}
LONG = {"name": "tune", "steps": 5000}


def recipe(*stages: dict[str, Any]) -> Recipe:
    tree = {
        "name": "any",
        "summary": "Any",
        "encoder": {"name": "any", "pooling": "mean", "max_tokens": 48},
        "tasks": {"sentiment": TASK},
        "stages": list(stages),
    }
    return Recipe.from_tree(tree, where="test")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each request to compile."""
    requests: list[dict[str, Any]] = []

    def note(encoder: Encoder, **named: Any) -> None:
        trains = sum(parameter.requires_grad for parameter in encoder.layers[0].parameters())
        requests.append({"trains": trains > 0, **named})

    monkeypatch.setattr(compiling, "compile_ahead", note)
    return requests


def start(made: Recipe, device: torch.device) -> None:
    shape = {"vocabulary": 40, "width": 32, "layers": 2, "heads": 2, "feed_forward": 48}
    encoder = Encoder(ARCHITECTURES["bert"].config(token_types=2, **shape))
    start_ahead(made, Network(encoder, pooling="mean", tasks=made.tasks), device)


def test_the_first_stage_that_trains_the_encoder_is_compiled(
    compiled: list[dict[str, Any]],
) -> None:
    heads_only = {"name": "heads", "tasks": ["sentiment"], "solve": True}
    start(recipe(heads_only, {**LONG, "freeze": ["layers.0"]}), GPU)
    assert compiled == [{"trains": False, "max_tokens": 48, "device": GPU}]


@pytest.mark.parametrize(
    ("stage", "device"),
    [
        (LONG, CPU),
        ({**LONG, "precision": "fp32"}, GPU),
        ({**LONG, "freeze": ["encoder"]}, GPU),
        ({**LONG, "steps": 20}, GPU),
    ],
)
def test_what_launches_no_fused_kernel_compiles_none(
    stage: dict[str, Any], device: torch.device, compiled: list[dict[str, Any]]
) -> None:
    start(recipe(stage), device)
    assert compiled == []
