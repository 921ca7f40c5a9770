"""Layers that heads share, while training: who moves them, and what surgery sees of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.recipe import Recipe
from tercet.specs import ModeSpec, StageSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.backward import Backward
from tercet.training.distributed import World
from tercet.training.losses import Losses
from tercet.training.parts import choose_trainable
from tercet.training.plan import Draw

CPU = torch.device("cpu")
TEXTS = ["a fine film", "how dull it is", "so-so", "the cat sits"]
LABELS = [1, 0, 1, 0]
COMMON = {"name": "common", "hidden": [6], "activation": "tanh"}


def block(shared: dict[str, Any] | None) -> dict[str, Any]:
    mode: dict[str, Any] = {
        "head": {"kind": "mlp", "dropout": 0.0},
        "objective": {"kind": "binary-cross-entropy"},
    }
    if shared:
        mode["shared"] = shared
    return {"data": {"layout": "cs224n-sst"}, "labels": ["no", "yes"], "single": mode}


BLOCKS = {"one": block(COMMON), "two": block(COMMON), "apart": block(None)}
DRAWS = [Draw("one", np.array([0, 1])), Draw("two", np.array([2, 3])), Draw("apart", np.array([1]))]


@pytest.fixture
def backward(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
) -> Callable[..., tuple[Network, Backward, Losses]]:
    def make(**keys: Any) -> tuple[Network, Backward, Losses]:
        stage = {"steps": 1, "batch": 8, "schedule": {"kind": "together"}, **keys}
        tree = {
            "name": "shared",
            "summary": "",
            "encoder": {"name": "x"},
            "tasks": BLOCKS,
            "stages": [stage],
        }
        recipe = Recipe.from_tree(tree, where="shared")
        network = make_network(BLOCKS).train()
        losses = Losses(
            network=network,
            tasks=recipe.tasks,
            tables={name: make_table(TEXTS, labels=LABELS) for name in BLOCKS},
            template=tokenizer.template,
            max_tokens=24,
            world=World(rank=0, size=1, device=CPU),
        )
        choose_trainable(network, recipe.stages[0], tasks=list(BLOCKS))
        return network, Backward(recipe, recipe.stages[0], losses), losses

    return make


def gradients(losses: Losses, *draws: Draw) -> list[torch.Tensor]:
    """By autograd, of the shared layers, for the sum of the draws' losses."""
    loss = sum(losses.loss(losses.batch(d.task, d.rows, total=len(d.rows))) for d in draws)
    assert isinstance(loss, torch.Tensor)
    return list(torch.autograd.grad(loss, list(losses.network.shared.parameters())))


def test_gradients_of_all_who_share_add_up(backward: Any) -> None:
    network, step, losses = backward()
    step(DRAWS, step=0)
    found = [parameter.grad for parameter in network.shared.parameters()]
    for ours, wanted in zip(found, gradients(losses, *DRAWS[:2]), strict=True):
        torch.testing.assert_close(ours, wanted)


def test_a_step_of_others_leaves_them_alone(backward: Any) -> None:
    network, step, _ = backward()
    step(DRAWS[2:], step=0)
    assert all(parameter.grad is None for parameter in network.shared.parameters())


def test_surgery_sees_a_row_of_each_task(backward: Any) -> None:
    network, step, losses = backward(surgery="pcgrad")
    rows: list[list[torch.Tensor]] = []
    weights = step.surgery.weights

    def spy(gramian: torch.Tensor) -> torch.Tensor:
        for number, draw in enumerate(DRAWS):
            step.rows.write_to(number, task=draw.task)
            rows.append([parameter.grad.clone() for parameter in network.shared.parameters()])
        found: torch.Tensor = weights(gramian)
        return found

    step.surgery.weights = spy
    step(DRAWS, step=0)
    for row, draw in zip(rows, DRAWS[:2], strict=False):
        for found, wanted in zip(row, gradients(losses, draw), strict=True):
            torch.testing.assert_close(found, wanted)
    assert not any(part.any() for part in rows[2])


def test_shared_layers_freeze_by_their_name(make_network: Callable[..., Network]) -> None:
    network = make_network(BLOCKS)
    choose_trainable(network, StageSpec(steps=1, freeze=["shared.common"]), tasks=["one", "two"])
    assert not any(parameter.requires_grad for parameter in network.shared.parameters())
    choose_trainable(network, StageSpec(steps=1), tasks=["apart"])
    assert not any(parameter.requires_grad for parameter in network.shared.parameters())
    choose_trainable(network, StageSpec(steps=1, freeze=["encoder"]), tasks=["one"])
    assert all(parameter.requires_grad for parameter in network.shared.parameters())


def test_heads_that_read_another_width_cannot_share(make_network: Callable[..., Network]) -> None:
    pair = block(COMMON)
    pair["bi"] = pair.pop("single") | {"head": {"kind": "features", "features": ["u", "v"]}}
    with pytest.raises(TercetError, match="`common` read 32 numbers in one head and 64 in another"):
        make_network({"one": block(COMMON), "pair": pair})


def test_layers_of_one_name_must_be_the_same() -> None:
    tree = {
        "name": "shared",
        "summary": "",
        "encoder": {"name": "x"},
        "tasks": {"one": block(COMMON), "two": block(COMMON | {"hidden": [7]})},
        "stages": [{"steps": 1}],
    }
    with pytest.raises(TercetError, match="`common` of task `two`, mode `single`, differ from"):
        Recipe.from_tree(tree, where="shared")


def test_dropout_of_a_mode_is_on_the_vectors_that_shared_layers_read(
    make_network: Callable[..., Network],
) -> None:
    mode: dict[str, Any] = {
        "shared": COMMON,
        "dropout": 0.5,
        "head": {"kind": "dense-pair", "difference": True, "activation": "tanh", "dropout": 0.0},
        "objective": {"kind": "binary-cross-entropy"},
    }
    task = {"data": {"layout": "cs224n-quora"}, "labels": ["no", "yes"], "cross": mode}
    network = make_network({"one": task})
    ab, ba = torch.randn(2, 5, network.encoder.config.width)
    head = network.heads_of("one")["cross"]
    # By hand: each order's vector under its own mask, then the common layer, then their difference.
    torch.manual_seed(3)
    first, second = (F.dropout(vectors, 0.5) for vectors in (ab, ba))
    expected = head(first, second, shared=network.shared["common"])
    torch.manual_seed(3)
    torch.testing.assert_close(network.train().head("one", "cross")(ab, ba), expected)
    plain = head(ab, ba, shared=network.shared["common"])
    assert not torch.allclose(plain, expected)
    torch.testing.assert_close(network.eval().head("one", "cross")(ab, ba), plain)


def test_dropout_of_a_mode_needs_vectors() -> None:
    with pytest.raises(ValueError, match="`dropout` of a mode needs a head that reads vectors"):
        ModeSpec.model_validate({"dropout": 0.1, "objective": {"kind": "simcse"}})
