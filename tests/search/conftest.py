"""Small models with a cross mode, and small files of texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tercet.data.stream import TextFile
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

TASKS = {
    "paraphrase": TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "paraphrase"],
            "cross": {"head": {"kind": "mlp"}, "objective": {"kind": "binary-cross-entropy"}},
        }
    )
}


def make_model(encoder: Path, tasks: dict[str, TaskSpec], *, pooling: str = "mean") -> Model:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network(load_encoder(encoder), pooling=pooling, tasks=tasks)
        for parameter in network.heads.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    info = ModelInfo(encoder="tiny", pooling=pooling, max_tokens=24, tasks=tasks)
    return Model(network, Tokenizer.load(encoder), info)


@pytest.fixture(scope="session")
def model(tiny_encoder: Path) -> Model:
    """With a cross mode."""
    return make_model(tiny_encoder, TASKS)


@pytest.fixture(scope="session")
def plain_model(tiny_encoder: Path) -> Model:
    """The same encoder without heads."""
    return make_model(tiny_encoder, {})


@pytest.fixture(scope="session")
def other_model(tiny_encoder: Path) -> Model:
    """The same weights, pooled otherwise."""
    return make_model(tiny_encoder, {}, pooling="cls")


@pytest.fixture(scope="session")
def model_folder(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder)
    return folder


WriteRows = Callable[..., TextFile]


@pytest.fixture
def rows(tmp_path: Path) -> WriteRows:
    """Writes texts with ids and prices and opens the file."""

    def write(texts: list[str], *, first: int = 0, name: str = "rows.csv") -> TextFile:
        lines = ["id,text,price"]
        lines += [f"r{first + n},{text},{first + n}" for n, text in enumerate(texts)]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return TextFile.open(path)

    return write
