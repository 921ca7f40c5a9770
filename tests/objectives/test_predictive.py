from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from torch import Tensor, nn
from torch.nn import functional as F

from tercet.heads.cosine import CosineHead
from tercet.objectives.binary_cross_entropy import BinaryCrossEntropy
from tercet.objectives.binned_cross_entropy import BinnedCrossEntropy
from tercet.objectives.cross_entropy import CrossEntropy
from tercet.objectives.hinge import Hinge
from tercet.objectives.mean_absolute_error import MeanAbsoluteError
from tercet.objectives.mean_squared_error import MeanSquaredError
from tercet.specs import (
    OBJECTIVES,
    BinaryCrossEntropySpec,
    BinnedCrossEntropySpec,
    CrossEntropySpec,
    HingeSpec,
    LabelSpace,
    MaskedLanguageModelSpec,
    MeanAbsoluteErrorSpec,
    MeanSquaredErrorSpec,
    MultipleNegativesRankingSpec,
    SimCSESpec,
    SupervisedContrastiveSpec,
    TeacherVectorsSpec,
    TripletSpec,
)
from tercet.specs.registry import resolve

ROWS = 7
GRADED = {"label_range": (0.0, 5.0), "targets": (-1.0, 1.0)}
PREDICTIVE: dict[str, dict[str, Any]] = {
    "cross-entropy": {"classes": 5, "label_smoothing": 0.1},
    "binary-cross-entropy": {"classes": 2},
    "mean-squared-error": GRADED,
    "mean-absolute-error": GRADED,
    "hinge": {"label_range": (0.0, 5.0), "margin": 0.7},
    "binned-cross-entropy": {"label_range": (0.0, 5.0), "bins": 6},
}


def rows_of(kind: str, *, rows: int = ROWS, seed: int = 0) -> tuple[Any, Tensor, Tensor]:
    """An objective, head outputs and labels that fit it."""
    generator = torch.Generator().manual_seed(seed)
    objective = resolve(OBJECTIVES[kind].implementation)(**PREDICTIVE[kind])
    outputs = {"cross-entropy": 5, "binned-cross-entropy": 6}.get(kind, 1)
    raw = torch.randn(rows, outputs, generator=generator).requires_grad_()
    if "label_range" in PREDICTIVE[kind]:
        return objective, raw, 5.0 * torch.rand(rows, generator=generator)
    classes = PREDICTIVE[kind]["classes"]
    return objective, raw, torch.randint(classes, (rows,), generator=generator)


REFERENCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": lambda raw, labels: F.cross_entropy(raw, labels, label_smoothing=0.1),
    "binary-cross-entropy": lambda raw, labels: F.binary_cross_entropy(
        raw[:, 0].sigmoid(), labels.float()
    ),
    "mean-squared-error": lambda raw, labels: F.mse_loss(raw[:, 0], labels / 2.5 - 1.0),
    "mean-absolute-error": lambda raw, labels: F.l1_loss(raw[:, 0], labels / 2.5 - 1.0),
    "hinge": lambda raw, labels: (
        F.multi_margin_loss(
            torch.cat([torch.zeros_like(raw), raw], dim=1), (labels > 2.5).long(), margin=0.7
        )
        * 2
    ),
    "binned-cross-entropy": lambda raw, labels: F.cross_entropy(raw, labels.round().long()),
}


def test_every_kind_of_the_recipe_builds_from_its_keys() -> None:
    common = {"classes": 2, "label_range": (0.0, 5.0)}
    predictive = (
        CrossEntropySpec(),
        BinaryCrossEntropySpec(),
        MeanSquaredErrorSpec(targets=(0, 1)),
        MeanAbsoluteErrorSpec(),
        HingeSpec(),
        BinnedCrossEntropySpec(bins=4),
    )
    contrastive = (SimCSESpec(), MultipleNegativesRankingSpec(), TripletSpec())
    own_labels = (MaskedLanguageModelSpec(), TeacherVectorsSpec(), SupervisedContrastiveSpec())
    known = {spec.kind for spec in (*predictive, *contrastive, *own_labels)}
    assert known == set(OBJECTIVES)
    outputs = {"cross-entropy": 2, "binned-cross-entropy": 4}
    for spec in predictive:
        spec.build(**common)
        labels = LabelSpace(classes=2, range=(0.0, 5.0))
        assert spec.outputs(labels) == outputs.get(spec.kind, 1)
    for spec in (*contrastive, *own_labels):
        spec.build()


@pytest.mark.parametrize("kind", list(PREDICTIVE))
def test_loss_and_gradient_agree_with_torch(kind: str) -> None:
    objective, raw, labels = rows_of(kind)
    found = objective.loss(raw, labels, total=ROWS)
    expected = REFERENCES[kind](raw, labels)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, raw), torch.autograd.grad(expected, raw))


@pytest.mark.parametrize("kind", list(PREDICTIVE))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_losses_of_a_split_batch_add_up(kind: str, data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 9))
    cut = data.draw(st.integers(0, rows))
    objective, raw, labels = rows_of(kind, rows=rows, seed=data.draw(st.integers(0, 99)))
    whole = objective.loss(raw, labels, total=rows)
    parts = objective.loss(raw[:cut], labels[:cut], total=rows) + objective.loss(
        raw[cut:], labels[cut:], total=rows
    )
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts, raw), torch.autograd.grad(whole, raw))


@pytest.mark.parametrize("kind", list(PREDICTIVE))
def test_loss_is_fp32_from_bf16(kind: str) -> None:
    objective, raw, labels = rows_of(kind)
    half = raw.detach().bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = objective.loss(half, labels, total=ROWS)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, objective.loss(half.float(), labels, total=ROWS))


def test_losses_worked_by_hand() -> None:
    even = torch.zeros(2, 4)
    loss = CrossEntropy(classes=4).loss(even, torch.tensor([0, 3]), total=2)
    assert loss.item() == pytest.approx(math.log(4))
    logit = torch.tensor([[math.log(3)]])
    loss = BinaryCrossEntropy().loss(logit, torch.tensor([0]), total=2)
    assert loss.item() == pytest.approx(math.log(4) / 2)
    raw, labels = torch.tensor([[0.5], [1.0]]), torch.tensor([5.0, 0.0])
    scaled = {"label_range": (0.0, 5.0), "targets": (0.0, 1.0)}
    assert MeanSquaredError(**scaled).loss(raw, labels, total=2).item() == pytest.approx(0.625)
    assert MeanAbsoluteError(**scaled).loss(raw, labels, total=2).item() == pytest.approx(0.75)
    assert MeanAbsoluteError().loss(raw, labels, total=1).item() == pytest.approx(5.5)


class Given(nn.Module):
    """Stands in for a SentenceTransformer: the vectors are already there."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return features


def test_cosine_regression_agrees_with_sentence_transformers() -> None:
    u, v = (torch.randn(ROWS, 8, requires_grad=True) for _ in range(2))
    grades = 5.0 * torch.rand(ROWS)
    theirs = CosineSimilarityLoss(Given())
    expected = theirs([{"sentence_embedding": u}, {"sentence_embedding": v}], grades / 5.0)
    ours = MeanSquaredError(label_range=(0.0, 5.0), targets=(0.0, 1.0))
    found = ours.loss(CosineHead(width=8)(u, v), grades, total=ROWS)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, (u, v)), torch.autograd.grad(expected, (u, v))
    )


@pytest.mark.parametrize("objective", [MeanSquaredError, MeanAbsoluteError])
@given(
    low=st.floats(-10, 10),
    width=st.floats(0.1, 10),
    lowest=st.floats(-2, 2),
    span=st.floats(0.1, 4),
    share=st.floats(0, 1),
)
def test_a_perfect_output_costs_nothing_and_predicts_its_own_label(
    objective: type[MeanSquaredError],
    low: float,
    width: float,
    lowest: float,
    span: float,
    share: float,
) -> None:
    scaled = objective(label_range=(low, low + width), targets=(lowest, lowest + span))
    label, raw = torch.tensor([low + share * width]), torch.tensor([[lowest + share * span]])
    assert scaled.loss(raw, label, total=1).item() == pytest.approx(0.0, abs=1e-4)
    spec = MeanSquaredErrorSpec(targets=(lowest, lowest + span))
    predicted = spec.predict(raw.numpy(), LabelSpace(range=(low, low + width)))
    assert predicted.item() == pytest.approx(label.item(), abs=1e-3)


def test_hinge_by_hand() -> None:
    objective = Hinge(label_range=(0.0, 5.0), margin=1.0)
    raw = torch.tensor([[0.9], [0.2], [-0.5], [0.5], [2.0]])
    labels = torch.tensor([5.0, 2.6, 0.0, 2.5, 4.0])
    # 1 - 0.9, 1 - 0.2, 1 - 0.5, 1 + 0.5, and nothing beyond the margin
    assert objective.loss(raw, labels, total=5).item() == pytest.approx((0.1 + 0.8 + 0.5 + 1.5) / 5)


def test_binned_grades_by_hand() -> None:
    objective = BinnedCrossEntropy(label_range=(1.0, 3.0), bins=3)
    for label, bin_ in ((1.0, 0), (1.4, 0), (1.6, 1), (2.9, 2)):
        raw = torch.randn(1, 3)
        expected = F.cross_entropy(raw, torch.tensor([bin_]))
        torch.testing.assert_close(objective.loss(raw, torch.tensor([label]), total=1), expected)


LABELS = 4


def several_labels(*, rows: int = ROWS, seed: int = 0) -> tuple[BinaryCrossEntropy, Tensor, Tensor]:
    """The objective, outputs and labels of rows that may have several of four labels."""
    generator = torch.Generator().manual_seed(seed)
    raw = torch.randn(rows, LABELS, generator=generator).requires_grad_()
    labels = torch.randint(2, (rows, LABELS), generator=generator)
    return BinaryCrossEntropy(classes=LABELS), raw, labels


def test_several_labels_are_averaged_as_torch_does() -> None:
    objective, raw, labels = several_labels()
    found = objective.loss(raw, labels, total=ROWS)
    expected = F.binary_cross_entropy_with_logits(raw, labels.float())
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, raw), torch.autograd.grad(expected, raw))


def test_several_labels_of_a_split_batch_add_up() -> None:
    objective, raw, labels = several_labels()
    parts = [
        objective.loss(raw[rows], labels[rows], total=ROWS)
        for rows in (slice(0, 3), slice(3, 3), slice(3, ROWS))
    ]
    torch.testing.assert_close(sum(parts), objective.loss(raw, labels, total=ROWS))


def test_a_teacher_of_several_labels_is_met_where_its_probabilities_are() -> None:
    objective, raw, _ = several_labels()
    targets = torch.rand(ROWS, LABELS, generator=torch.Generator().manual_seed(1))
    found = objective.teacher_loss(raw, targets, temperature=2.0, total=ROWS)
    cross_entropy = F.binary_cross_entropy((raw / 2.0).sigmoid(), targets)
    entropy = F.binary_cross_entropy(targets, targets)
    torch.testing.assert_close(found, 4.0 * (cross_entropy - entropy))
    met = objective.teacher_loss(2.0 * targets.logit(), targets, temperature=2.0, total=ROWS)
    assert abs(float(met)) < 1e-6


def test_several_labels_disagree_label_by_label() -> None:
    objective, first, _ = several_labels()
    _, second, _ = several_labels(seed=1)
    alone = [
        BinaryCrossEntropy().disagreement(first[:, [i]], second[:, [i]], total=ROWS)
        for i in range(LABELS)
    ]
    found = objective.disagreement(first, second, total=ROWS)
    torch.testing.assert_close(found, torch.stack(alone).mean())


@pytest.mark.parametrize("keys", [{}, {"label_smoothing": 0.1}, {"ordinal": 0.7}])
def test_class_weights_of_cross_entropy_are_torchs(keys: dict[str, float]) -> None:
    generator = torch.Generator().manual_seed(0)
    raw, labels = torch.randn(ROWS, 3, generator=generator), torch.arange(ROWS) % 3
    weights = torch.tensor([0.5, 2.0, 1.0])
    objective = CrossEntropy(classes=3, **keys)
    targets = labels
    if "ordinal" in keys:
        distances = (torch.arange(3) - labels[:, None]) ** 2
        targets = (-0.7 * distances.float()).softmax(dim=1)
    expected = F.cross_entropy(
        raw, targets, weights, reduction="sum", label_smoothing=keys.get("label_smoothing", 0.0)
    )
    found = objective.loss(raw, labels, total=ROWS, weights=weights)
    torch.testing.assert_close(found, expected / ROWS)


def test_class_weights_of_two_classes_with_one_output_are_those_of_two_outputs() -> None:
    raw = torch.randn(ROWS, 1, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(ROWS) % 2
    weights = torch.tensor([0.5, 3.0])
    both = torch.cat([torch.zeros_like(raw), raw], dim=1)
    expected = F.cross_entropy(both, labels, weights, reduction="sum") / ROWS
    found = BinaryCrossEntropy().loss(raw, labels, total=ROWS, weights=weights)
    torch.testing.assert_close(found, expected)


def test_class_weights_of_several_labels_are_torchs_positive_weights() -> None:
    objective, raw, labels = several_labels()
    weights = torch.tensor([0.5, 3.0, 1.0, 7.0])
    expected = F.binary_cross_entropy_with_logits(raw, labels.float(), pos_weight=weights)
    found = objective.loss(raw, labels, total=ROWS, weights=weights)
    torch.testing.assert_close(found, expected)
