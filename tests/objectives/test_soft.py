"""Losses against a teacher, and between two draws of dropout, against torch's own and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tercet.objectives.binary_cross_entropy import BinaryCrossEntropy
from tercet.objectives.binned_cross_entropy import BinnedCrossEntropy
from tercet.objectives.cross_entropy import CrossEntropy
from tercet.objectives.hinge import Hinge
from tercet.objectives.mean_absolute_error import MeanAbsoluteError
from tercet.objectives.mean_squared_error import MeanSquaredError
from tercet.objectives.teacher_vectors import TeacherVectors
from tercet.specs import OBJECTIVES
from tercet.specs.registry import resolve

ROWS = 6


@pytest.fixture
def raw() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return (2.0 * torch.randn(ROWS, 5, generator=generator)).requires_grad_()


def probabilities(classes: int) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(ROWS, classes, generator=generator).softmax(dim=-1)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_classes_follow_the_teacher_as_in_hinton_et_al(raw: Tensor, temperature: float) -> None:
    """The gradient is that of soft cross-entropy times the square of the temperature."""
    targets = probabilities(5)
    loss = CrossEntropy(classes=5).teacher_loss(raw, targets, temperature=temperature, total=ROWS)
    soft = F.cross_entropy(raw / temperature, targets)
    entropy = -(targets * targets.log()).sum(dim=-1).mean()
    torch.testing.assert_close(loss, (soft - entropy) * temperature**2)
    found, expected = (torch.autograd.grad(x, raw)[0] for x in (loss, soft * temperature**2))
    torch.testing.assert_close(found, expected)


def test_a_student_that_agrees_costs_nothing(raw: Tensor) -> None:
    agreed = (raw / 2.0).softmax(dim=-1)
    loss = CrossEntropy(classes=5).teacher_loss(raw, agreed, temperature=2.0, total=ROWS)
    assert loss.item() == pytest.approx(0.0, abs=1e-5)


def test_two_classes_with_one_output_have_soft_targets(raw: Tensor) -> None:
    targets, one = probabilities(2), raw[:, :1]
    objective = BinaryCrossEntropy()
    loss = objective.teacher_loss(one, targets, temperature=1.0, total=ROWS)
    soft = F.binary_cross_entropy_with_logits(one[:, 0], targets[:, 1])
    entropy = F.binary_cross_entropy(targets[:, 1], targets[:, 1])
    torch.testing.assert_close(loss, soft - entropy)
    certain = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    loss = objective.teacher_loss(one[:2], certain, temperature=1.0, total=2)
    expected = F.binary_cross_entropy_with_logits(one[:2, 0], certain[:, 1])
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [
        (MeanSquaredError(label_range=(0.0, 5.0), targets=(0.0, 1.0)), 1),
        (MeanAbsoluteError(label_range=(0.0, 5.0)), 1),
        (Hinge(label_range=(0.0, 5.0)), 1),
        (BinnedCrossEntropy(label_range=(0.0, 5.0), bins=5), 5),
    ],
)
def test_a_teachers_grades_are_labels(
    raw: Tensor, objective: MeanSquaredError, outputs: int
) -> None:
    given, grades = raw[:, :outputs], torch.linspace(0.2, 4.9, ROWS)
    loss = objective.teacher_loss(given, grades[:, None], temperature=3.0, total=ROWS)
    torch.testing.assert_close(loss, objective.loss(given, grades, total=ROWS))


def test_disagreement_is_symmetric_kl(raw: Tensor) -> None:
    first, second = raw, raw.detach().flip(0)
    p, q = first.log_softmax(dim=-1), second.log_softmax(dim=-1)
    both = [F.kl_div(a, b, reduction="batchmean", log_target=True) for a, b in ((p, q), (q, p))]
    found = CrossEntropy(classes=5).disagreement(first, second, total=ROWS)
    torch.testing.assert_close(found, sum(both) / 2)
    one = BinaryCrossEntropy().disagreement(first[:1, :1], second[:1, :1], total=1)
    a, b = first[0, 0].sigmoid(), second[0, 0].sigmoid()
    torch.testing.assert_close(one, 0.5 * (a - b) * (a.logit() - b.logit()))


def test_grades_disagree_by_their_squared_distance(raw: Tensor) -> None:
    found = MeanSquaredError().disagreement(raw[:, :1], raw[:, 1:2], total=ROWS)
    torch.testing.assert_close(found, F.mse_loss(raw[:, 0], raw[:, 1]))


@pytest.mark.parametrize("kind", ["cross-entropy", "binned-cross-entropy", "hinge"])
def test_the_same_outputs_agree(raw: Tensor, kind: str) -> None:
    options = {"classes": 5} if kind == "cross-entropy" else {"label_range": (0.0, 5.0)}
    objective = resolve(OBJECTIVES[kind].implementation)(**options)
    assert objective.disagreement(raw, raw, total=ROWS).item() == 0.0


def test_ordinal_labels_by_hand() -> None:
    """Class 1 of 3 at ordinal 1: weights e^-1, 1, e^-1."""
    logits = torch.tensor([[0.3, -0.2, 0.5]])
    near, whole = math.exp(-1.0), 1.0 + 2.0 * math.exp(-1.0)
    logs = logits.log_softmax(dim=-1)[0]
    expected = -(near * logs[0] + logs[1] + near * logs[2]) / whole
    objective = CrossEntropy(classes=3, ordinal=1.0)
    torch.testing.assert_close(objective.loss(logits, torch.tensor([1]), total=1), expected)
    sharp = CrossEntropy(classes=3, ordinal=50.0)
    plain = CrossEntropy(classes=3)
    labels = torch.tensor([1])
    torch.testing.assert_close(
        sharp.loss(logits, labels, total=1), plain.loss(logits, labels, total=1)
    )


def test_vectors_are_kept_close(raw: Tensor) -> None:
    targets = raw.detach().flip(0)
    cosines = F.cosine_similarity(raw, targets)
    near = TeacherVectors().loss(raw, targets, total=ROWS)
    torch.testing.assert_close(near, (1.0 - cosines).mean())
    square = TeacherVectors(distance="euclidean").loss(raw, targets, total=ROWS)
    torch.testing.assert_close(square, F.mse_loss(raw, targets))
