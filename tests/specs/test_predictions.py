"""Outputs become predictions as in torch, and as worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from tercet.specs import (
    OBJECTIVES,
    BinaryCrossEntropySpec,
    BinnedCrossEntropySpec,
    CrossEntropySpec,
    HingeSpec,
    LabelSpace,
    MeanAbsoluteErrorSpec,
    MeanSquaredErrorSpec,
    PredictiveSpec,
)

GRADES = LabelSpace(range=(1.0, 3.0))
CASES: list[tuple[PredictiveSpec, LabelSpace, Any]] = [
    (CrossEntropySpec(), LabelSpace(classes=3), lambda x: x.softmax(dim=-1)),
    (BinaryCrossEntropySpec(), LabelSpace(classes=2), lambda x: x[:, 0].sigmoid()),
    (MeanSquaredErrorSpec(), GRADES, lambda x: x[:, 0].clamp(1, 3)),
    (MeanSquaredErrorSpec(targets=(-1, 1)), GRADES, lambda x: (x[:, 0] + 2).clamp(1, 3)),
    (MeanAbsoluteErrorSpec(targets=(0, 1)), GRADES, lambda x: (2 * x[:, 0] + 1).clamp(1, 3)),
    (HingeSpec(), GRADES, lambda x: (x[:, 0] + 2).clamp(1, 3)),
    (
        BinnedCrossEntropySpec(bins=5),
        GRADES,
        lambda x: (x.softmax(dim=-1) * torch.linspace(1, 3, 5)).sum(dim=-1),
    ),
]


@pytest.mark.parametrize(("spec", "labels", "reference"), CASES)
@pytest.mark.parametrize("rows", [0, 50])
def test_predictions_agree_with_torch(
    spec: PredictiveSpec, labels: LabelSpace, reference: Any, rows: int
) -> None:
    outputs = 100 * np.random.default_rng(0).standard_normal((rows, spec.outputs(labels)))
    outputs[::2] /= 100
    predicted = spec.predict(outputs.astype(np.float32), labels)
    expected = reference(torch.from_numpy(outputs.astype(np.float32))).numpy()
    assert predicted.shape == expected.shape
    assert predicted.dtype == np.float32
    assert np.abs(predicted - expected).max(initial=0.0) < 1e-5


def test_every_predictive_objective_is_compared() -> None:
    kinds = {kind for kind in OBJECTIVES if OBJECTIVES[kind].predicts}
    assert kinds == {spec.kind for spec, _, _ in CASES}


def floats(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def test_probabilities_by_hand() -> None:
    two = LabelSpace(classes=2)
    predicted = CrossEntropySpec().predict(floats([0.0, math.log(3)]), two)
    assert predicted == pytest.approx(floats([0.25, 0.75]))
    predicted = BinaryCrossEntropySpec().predict(floats([math.log(3)], [0.0]), two)
    assert predicted == pytest.approx(np.array([0.75, 0.5]))


@pytest.mark.parametrize("spec", [MeanSquaredErrorSpec, MeanAbsoluteErrorSpec])
def test_grades_are_clipped_to_the_range_of_the_labels(spec: type[MeanSquaredErrorSpec]) -> None:
    outputs = floats([-3.0], [0.0], [9.0])
    scaled = spec(targets=(-1.0, 1.0)).predict(outputs, LabelSpace(range=(0.0, 5.0)))
    assert scaled.tolist() == [0.0, 2.5, 5.0]
    assert spec().predict(outputs, LabelSpace(range=(1.0, 5.0))).tolist() == [1.0, 1.0, 5.0]


def test_hinge_and_bins_by_hand() -> None:
    outputs = floats([1.0], [0.0], [-1.0], [3.0])
    predicted = HingeSpec().predict(outputs, LabelSpace(range=(0.0, 5.0)))
    assert predicted.tolist() == [5.0, 2.5, 0.0, 5.0]
    outputs = floats([0.0, 50.0, 0.0], [0.0, 0.0, 0.0], [0.0, -50.0, 0.0], [50.0, 0.0, 0.0])
    predicted = BinnedCrossEntropySpec(bins=3).predict(outputs, GRADES)
    assert predicted == pytest.approx(np.array([2.0, 2.0, 2.0, 1.0]))
