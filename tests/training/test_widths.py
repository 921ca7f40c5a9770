"""Matryoshka widths: the loss against sentence-transformers, and vectors of the widths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import tercet
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.recipe import Recipe
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.listener import Silent
from tercet.training.losses import Losses
from tercet.training.run import train_recipe

CPU = torch.device("cpu")
WIDTHS = [4, 12, 20]
FIRST = ["a fine film", "how do i learn the guitar?", "dull", "the cat sits on the mat"]
SECOND = ["a good movie indeed", "learn guitar", "lively and long", "a cat sits"]
GRADES = [0.0, 5.0, 2.5, 1.25]
RANKING = {"objective": {"kind": "multiple-negatives-ranking", "scale": 20.0}}
COSINE: dict[str, Any] = {
    "head": {"kind": "cosine"},
    "objective": {"kind": "mean-squared-error", "targets": [0, 1]},
}


class Given(nn.Module):
    """An encoder in the eyes of sentence-transformers, whose vectors are given."""

    def __init__(self, columns: list[Tensor]) -> None:
        super().__init__()
        self.columns = columns
        self.truncate_dim = None

    def get_embedding_dimension(self) -> int:
        return int(self.columns[0].shape[1])

    def forward(self, features: dict[str, Any]) -> dict[str, Tensor]:
        return {"sentence_embedding": self.columns[features["column"]].clone()}


@pytest.mark.parametrize("kind", ["ranking", "cosine"])
def test_equal_to_the_loss_of_sentence_transformers(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
    kind: str,
) -> None:
    from sentence_transformers.sentence_transformer.losses import (
        CosineSimilarityLoss,
        MatryoshkaLoss,
        MultipleNegativesRankingLoss,
    )

    graded = {"range": [0, 5], "bi": COSINE}
    block = {"data": {"layout": "cs224n-sts"}, **(graded if kind == "cosine" else {"bi": RANKING})}
    labels = GRADES if kind == "cosine" else None
    losses = Losses(
        network=make_network({"t": block}),
        tasks={"t": TaskSpec.model_validate(block)},
        tables={"t": make_table(FIRST, SECOND, labels=labels)},
        template=tokenizer.template,
        max_tokens=24,
        world=World(rank=0, size=1, device=CPU),
        widths=WIDTHS,
    )
    batch = losses.batch("t", np.arange(4), total=4)
    found = losses.loss(batch)
    tokens = DeviceTokens.from_host(batch.tokens["bi"], CPU)
    model = Given([column.detach() for column in losses.network.columns(tokens, rows=4)])
    peers = {"ranking": MultipleNegativesRankingLoss, "cosine": CosineSimilarityLoss}
    whole = 32
    peer = MatryoshkaLoss(
        model,
        peers[kind](model),
        matryoshka_dims=[*WIDTHS, whole],
        matryoshka_weights=[0.25] * 4,
    )
    given = torch.tensor(GRADES) / 5.0 if kind == "cosine" else torch.zeros(4)
    expected = peer([{"column": 0}, {"column": 1}], given)
    torch.testing.assert_close(found.detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def model(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tercet.Model:
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    tree = {
        "name": "narrow",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(tiny_encoder), "max_tokens": 24, "widths": WIDTHS},
        "tasks": {
            "similarity": {
                "data": {"layout": "cs224n-sts", "limit": 12},
                "range": [0, 5],
                "bi": COSINE,
            }
        },
        "stages": [{"steps": 2, "batch": 4}],
    }
    recipe = Recipe.from_tree(tree, where="narrow")
    train_recipe(recipe, data=sample_data, out=tmp_path / "run", device="cpu", listener=Silent())
    return tercet.load(tmp_path / "run", device="cpu")


def test_a_model_gives_its_widths_and_no_others(model: tercet.Model, tmp_path: Path) -> None:
    assert model.widths == [4, 12, 20, 32]
    whole = model.embed(FIRST)
    for width in model.widths:
        narrow = model.embed(FIRST, width=width)
        first = whole[:, :width]
        expected = first / np.linalg.norm(first, axis=1, keepdims=True)
        np.testing.assert_allclose(narrow, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(TercetError, match="width 8; its widths are 4, 12, 20, 32"):
        model.embed(FIRST, width=8)
    card = (tmp_path / "run" / "model" / "README.md").read_text("utf-8")
    assert "their first 4, 12 and 20 numbers" in card


def test_a_plain_model_has_one_width(tiny_encoder: Path) -> None:
    model = tercet.load(tiny_encoder, device="cpu")
    assert model.widths == [32]
    assert np.array_equal(model.embed(FIRST, width=32), model.embed(FIRST))


@pytest.mark.parametrize(
    ("widths", "head", "message"),
    [
        ([20, 4], {"kind": "cosine"}, "must rise"),
        ([4, 33], {"kind": "cosine"}, "only 32 wide"),
        ([4], {"kind": "cosine", "projection": True}, "needs a task with a `cosine` head"),
    ],
)
def test_widths_that_cannot_be_are_told(
    tiny_encoder: Path,
    sample_data: Path,
    tmp_path: Path,
    widths: list[int],
    head: dict[str, Any],
    message: str,
) -> None:
    tree = {
        "name": "narrow",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(tiny_encoder), "max_tokens": 24, "widths": widths},
        "tasks": {
            "similarity": {
                "data": {"layout": "cs224n-sts"},
                "range": [0, 5],
                "bi": {**COSINE, "head": head},
            }
        },
        "stages": [{"steps": 1}],
    }

    def train() -> None:
        recipe = Recipe.from_tree(tree, where="narrow")
        train_recipe(recipe, data=sample_data, out=tmp_path / "x", device="cpu", listener=Silent())

    with pytest.raises(TercetError, match=message):
        train()
