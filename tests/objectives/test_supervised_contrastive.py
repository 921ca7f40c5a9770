"""Supervised contrastive learning against sums written out row by row."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tercet.objectives.supervised_contrastive import SupervisedContrastive

WIDTH = 5
FORMS = ["softmax", "squared"]


def rows_of(labels: list[int], *, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(len(labels), WIDTH, generator=generator)
    return vectors.requires_grad_(), torch.tensor(labels)


def whole(objective: SupervisedContrastive, vectors: Tensor, labels: Tensor) -> Tensor:
    return objective.loss(
        vectors, labels, candidates=vectors, candidate_labels=labels, first=0, total=len(labels)
    )


def by_hand(vectors: Tensor, labels: list[int], *, form: str, temperature: float) -> float:
    """The loss of the paper (its form L_out), or squared distances of cosines from 1 and 0."""
    units = [[x / math.hypot(*row) for x in row] for row in vectors.tolist()]
    cosine = [[sum(map(float.__mul__, a, b)) for b in units] for a in units]
    total = 0.0
    for i, own in enumerate(labels):
        others = [j for j in range(len(labels)) if j != i]
        alike = [j for j in others if labels[j] == own]
        apart = [j for j in others if labels[j] != own]
        if form == "squared":
            total += sum((1 - cosine[i][j]) ** 2 for j in alike) / max(1, len(alike))
            total += sum(cosine[i][j] ** 2 for j in apart) / max(1, len(apart))
            continue
        among = math.log(sum(math.exp(cosine[i][j] / temperature) for j in others))
        likely = [cosine[i][j] / temperature - among for j in alike]
        total -= sum(likely) / max(1, len(alike))
    return total / len(labels)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("temperature", [0.1, 0.7])
@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 0], [0, 1, 2], [1, 1], [0, 1]])
def test_the_loss_is_the_one_written_out(form: str, temperature: float, labels: list[int]) -> None:
    vectors, numbers = rows_of(labels)
    objective = SupervisedContrastive(form=form, temperature=temperature)
    found = whole(objective, vectors, numbers)
    expected = by_hand(vectors.detach(), labels, form=form, temperature=temperature)
    assert found.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    (gradient,) = torch.autograd.grad(found, vectors, allow_unused=True, materialize_grads=True)
    assert gradient.isfinite().all()


def test_worked_by_hand() -> None:
    vectors, labels = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]]), torch.tensor([7, 7, 9])
    # The two alike have cosine 1 with each other and 0 with the third, which is alone in its class.
    each = math.log(math.exp(2.0) + 1.0) - 2.0
    found = whole(SupervisedContrastive(temperature=0.5), vectors, labels)
    assert found.item() == pytest.approx(2 * each / 3)
    assert whole(SupervisedContrastive(form="squared"), vectors, labels).item() == 0.0
    mixed = torch.tensor([7, 9, 9])
    # 1: cosines 1 and 0 apart; 2: 0 alike, 1 apart; 3: 0 alike, 0 apart.
    expected = (0.5 + (1.0 + 1.0) + 1.0) / 3
    found = whole(SupervisedContrastive(form="squared"), vectors, mixed)
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(
    labels=st.lists(st.integers(0, 2), min_size=1, max_size=9),
    cut=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_losses_of_two_ranks_add_up(form: str, labels: list[int], cut: int, seed: int) -> None:
    vectors, numbers = rows_of(labels, seed=seed)
    objective = SupervisedContrastive(form=form)
    cut = min(cut, len(labels))
    parts = torch.zeros(())
    for start, end in ((0, cut), (cut, len(labels))):
        parts = parts + objective.loss(
            vectors[start:end],
            numbers[start:end],
            candidates=vectors,
            candidate_labels=numbers,
            first=start,
            total=len(labels),
        )
    expected = whole(objective, vectors, numbers)
    torch.testing.assert_close(parts, expected)
    gradients = [
        torch.autograd.grad(loss, vectors, allow_unused=True, materialize_grads=True)[0]
        for loss in (parts, expected)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-30, 1e18])
def test_gradients_stay_finite_for_identical_vectors(form: str, value: float) -> None:
    vectors = torch.full((6, WIDTH), value, requires_grad=True)
    loss = whole(SupervisedContrastive(form=form), vectors, torch.arange(6) % 2)
    (gradient,) = torch.autograd.grad(loss, vectors)
    assert loss.isfinite()
    assert gradient.abs().max() < 1e3


def test_loss_is_fp32_from_bf16() -> None:
    vectors, labels = rows_of([0, 0, 1, 1])
    with torch.autocast("cpu", torch.bfloat16):
        found = whole(SupervisedContrastive(), vectors.detach().bfloat16(), labels)
    assert found.dtype == torch.float32
    expected = whole(SupervisedContrastive(), vectors.detach().bfloat16().float(), labels)
    torch.testing.assert_close(found, expected)
