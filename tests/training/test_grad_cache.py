"""Batches in chunks against the same batches whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tercet.data.table import TaskTable
from tercet.network.network import Network
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.grad_cache import GradCache
from tercet.training.losses import Losses

CPU = torch.device("cpu")
FIRST = ["a fine film", "how do i learn the guitar?", "dull", "the cat sits on the mat", "it is"]
SECOND = ["a good movie indeed", "learn guitar", "lively and long " * 9, "a cat sits", "is it so"]
THIRD = ["rain", "what is a film", "the end of it all", "dogs run", "no"]
ROWS = np.array([4, 0, 2, 3, 1])
OBJECTIVES = {
    "simcse": {"kind": "simcse"},
    "ranking": {"kind": "multiple-negatives-ranking"},
    "triplet": {"kind": "triplet"},
}


@pytest.fixture
def losses(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
) -> Callable[..., Losses]:
    def make(objective: str, *columns: list[str], dropout: float = 0.0) -> Losses:
        block = {
            "data": {"layout": "sentences"},
            "bi": {"objective": OBJECTIVES[objective], "weight": 0.7},
        }
        return Losses(
            network=make_network({"t": block}, dropout=dropout).train(),
            tasks={"t": TaskSpec.model_validate(block)},
            tables={"t": make_table(*columns)},
            template=tokenizer.template,
            max_tokens=24,
            world=World(rank=0, size=1, device=CPU),
        )

    return make


def gradients(network: Network) -> dict[str, Tensor]:
    found = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
    network.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("chunk", [1, 2, 4])
@pytest.mark.parametrize(
    ("objective", "columns"),
    [
        ("simcse", (FIRST, SECOND, THIRD)),
        ("simcse", (FIRST,)),
        ("ranking", (FIRST, SECOND)),
        ("triplet", (FIRST, SECOND, THIRD)),
    ],
)
def test_loss_and_gradients_are_those_of_the_whole_batch(
    losses: Callable[..., Losses], objective: str, columns: Any, chunk: int
) -> None:
    made = losses(objective, *columns)
    loss = made.loss(made.batch("t", ROWS, total=9))
    torch.autograd.backward(0.5 * loss)
    expected = gradients(made.network)
    cache = GradCache(made, bf16=False, seed=torch.manual_seed)
    found = cache.backward("t", ROWS, total=9, weight=0.5, chunk=chunk)
    torch.testing.assert_close(found, loss.detach(), rtol=1e-5, atol=1e-6)
    # Some gradients are 0 but for rounding.
    least = 1e-3 * max(gradient.abs().max().item() for gradient in expected.values())
    for name, gradient in gradients(made.network).items():
        scale = expected[name].abs().max().clamp(min=least)
        torch.testing.assert_close(gradient / scale, expected[name] / scale, rtol=0, atol=1e-3)


def test_the_second_encoding_drops_what_the_first_dropped(losses: Callable[..., Losses]) -> None:
    """With the same draws, the gradient is the slope of the loss."""
    made = losses("simcse", FIRST, SECOND, dropout=0.3)
    cache = GradCache(made, bf16=False, seed=torch.manual_seed)

    def loss() -> float:
        return cache.backward("t", ROWS, total=5, weight=1.0, chunk=2).item()

    loss()
    name = "encoder.layers.0.feed_forward.expand.weight"
    gradient = gradients(made.network)[name]
    direction = torch.randn(gradient.shape, generator=torch.Generator().manual_seed(1))
    parameter = made.network.get_parameter(name)
    ends = []
    for step in (1e-3, -2e-3):
        with torch.no_grad():
            parameter += step * direction
        ends.append(loss())
    assert (ends[0] - ends[1]) / 2e-3 == pytest.approx(
        (gradient * direction).sum().item(), rel=0.03
    )
