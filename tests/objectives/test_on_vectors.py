from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.losses import (
    MultipleNegativesRankingLoss,
    TripletDistanceMetric,
    TripletLoss,
)
from torch import Tensor, nn
from torch.nn import functional as F

from tercet.errors import TercetError
from tercet.objectives.base import ContrastiveObjective
from tercet.objectives.multiple_negatives_ranking import MultipleNegativesRanking
from tercet.objectives.simcse import SimCSE
from tercet.objectives.triplet import Triplet

ROWS, WIDTH = 6, 8
CONTRASTIVE: list[tuple[ContrastiveObjective, int]] = [
    (SimCSE(), 2),
    (SimCSE(temperature=0.1), 3),
    (MultipleNegativesRanking(), 2),
    (MultipleNegativesRanking(scale=5.0), 3),
    (Triplet(), 3),
    (Triplet(margin=0.3, distance="cosine"), 3),
]


class Given(nn.Module):
    """Stands in for a SentenceTransformer: the vectors are already there."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return features


def columns_of(count: int, *, rows: int = ROWS, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(count, rows, WIDTH, generator=generator)
    return tuple(column.clone().requires_grad_() for column in vectors)


def whole(objective: ContrastiveObjective, columns: tuple[Tensor, ...]) -> Tensor:
    return objective.loss(columns, candidates=columns[1:], first=0, total=len(columns[0]))


@pytest.mark.parametrize(
    ("ours", "theirs", "count"),
    [
        (MultipleNegativesRanking(), MultipleNegativesRankingLoss(Given()), 2),
        (MultipleNegativesRanking(), MultipleNegativesRankingLoss(Given()), 3),
        (MultipleNegativesRanking(scale=7.0), MultipleNegativesRankingLoss(Given(), scale=7.0), 3),
        (SimCSE(temperature=0.05), MultipleNegativesRankingLoss(Given(), scale=20.0), 2),
        (SimCSE(temperature=0.1), MultipleNegativesRankingLoss(Given(), scale=10.0), 3),
        (Triplet(margin=1.0), TripletLoss(Given(), triplet_margin=1.0), 3),
        (
            Triplet(margin=0.5, distance="cosine"),
            TripletLoss(Given(), TripletDistanceMetric.COSINE, triplet_margin=0.5),
            3,
        ),
    ],
)
def test_loss_and_gradients_agree_with_sentence_transformers(
    ours: ContrastiveObjective, theirs: nn.Module, count: int
) -> None:
    columns = columns_of(count)
    found = whole(ours, columns)
    expected = theirs([{"sentence_embedding": column} for column in columns], None)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, columns), torch.autograd.grad(expected, columns)
    )


@pytest.mark.parametrize(("objective", "count"), CONTRASTIVE)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_losses_of_a_split_batch_add_up(
    objective: ContrastiveObjective, count: int, data: st.DataObject
) -> None:
    rows = data.draw(st.integers(1, 9))
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=3)))
    columns = columns_of(count, rows=rows, seed=data.draw(st.integers(0, 99)))
    parts = torch.zeros(())
    for start, end in zip([0, *cuts], [*cuts, rows], strict=True):
        local = tuple(column[start:end] for column in columns)
        parts = parts + objective.loss(local, candidates=columns[1:], first=start, total=rows)
    expected = whole(objective, columns)
    torch.testing.assert_close(parts, expected)
    torch.testing.assert_close(
        torch.autograd.grad(parts, columns),
        torch.autograd.grad(expected, columns),
        rtol=1e-4,
        atol=1e-6,
    )


def test_contrastive_losses_worked_by_hand() -> None:
    anchors = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    columns = (anchors, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    # Each anchor has cosine 1 with its own positive and 0 with the other.
    expected = math.log(1 + math.exp(-2.0))
    assert whole(SimCSE(temperature=0.5), columns).item() == pytest.approx(expected)
    # The hard negatives point against their own anchor and lie square to the other.
    triple = (*columns, torch.tensor([[-1.0, 0.0], [0.0, -1.0]]))
    expected = math.log(1 + math.exp(-2.0) + math.exp(-2.0) + math.exp(-4.0))
    loss = whole(MultipleNegativesRanking(scale=2.0), triple)
    assert loss.item() == pytest.approx(expected)


def test_triplet_worked_by_hand() -> None:
    anchors = torch.zeros(2, 2)
    positives = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    negatives = torch.tensor([[0.0, 2.0], [6.0, 8.0]])
    # 5 - 2 + 1 = 4, and 1 - 10 + 1 < 0.
    assert whole(Triplet(margin=1.0), (anchors, positives, negatives)).item() == 2.0
    columns = tuple(torch.tensor([row]) for row in ([1.0, 0.0], [0.0, 5.0], [2.0, 0.0]))
    assert whole(Triplet(margin=0.5, distance="cosine"), columns).item() == 1.5


@pytest.mark.parametrize(("objective", "count"), CONTRASTIVE)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-30, 1e18])
def test_gradients_stay_finite_for_identical_vectors(
    objective: ContrastiveObjective, count: int, value: float
) -> None:
    columns = tuple(torch.full((ROWS, WIDTH), value, requires_grad=True) for _ in range(count))
    loss = whole(objective, columns)
    gradients = torch.autograd.grad(loss, columns, allow_unused=True, materialize_grads=True)
    assert loss.isfinite()
    assert all(gradient.abs().max() < 1e3 for gradient in gradients)


@pytest.mark.parametrize(("objective", "count"), CONTRASTIVE)
def test_loss_is_fp32_from_bf16(objective: ContrastiveObjective, count: int) -> None:
    columns = tuple(column.detach().bfloat16() for column in columns_of(count))
    with torch.autocast("cpu", torch.bfloat16):
        found = whole(objective, columns)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, whole(objective, tuple(c.float() for c in columns)))


def test_simcse_keeps_identical_views_apart_from_other_rows() -> None:
    view = F.normalize(torch.eye(4), dim=1)
    assert whole(SimCSE(temperature=0.05), (view, view)).item() < 1e-7
    rolled = view.roll(1, dims=0)
    assert whole(SimCSE(temperature=0.05), (view, rolled)).item() == pytest.approx(20.0, rel=1e-3)


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (SimCSE, 1),
        (SimCSE, 4),
        (MultipleNegativesRanking, 1),
        (Triplet, 2),
        (Triplet, 4),
    ],
)
def test_a_wrong_number_of_columns_is_named(build: Callable[[], Any], count: int) -> None:
    with pytest.raises(TercetError, match=f"not {count}"):
        whole(build(), columns_of(count))
