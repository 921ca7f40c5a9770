"""What a head gives, as predictions, without torch: the objectives' `predict` in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.specs import (
    BinaryCrossEntropySpec,
    BinnedCrossEntropySpec,
    CrossEntropySpec,
    HingeSpec,
    MeanAbsoluteErrorSpec,
    MeanSquaredErrorSpec,
    ModeSpec,
    TaskSpec,
)

Floats = NDArray[np.float32]
Range = tuple[float, float]


def output_width(task: TaskSpec, spec: ModeSpec) -> int:
    """Numbers a row that the head of a mode gives."""
    if isinstance(spec.objective, CrossEntropySpec):
        return len(task.labels or ())
    return spec.objective.bins if isinstance(spec.objective, BinnedCrossEntropySpec) else 1


def predict(task: TaskSpec, spec: ModeSpec, outputs: Floats) -> Floats:
    """outputs [n, outputs] -> probabilities [n, classes] or [n], or grades [n], float32."""
    objective = spec.objective
    if isinstance(objective, CrossEntropySpec):
        return _softmax(outputs)
    if isinstance(objective, BinaryCrossEntropySpec):
        # By the hyperbolic tangent: no number is too large for it.
        shares: Floats = np.float32(0.5) * (np.tanh(outputs[:, 0] / np.float32(2)) + np.float32(1))
        return shares
    assert task.range is not None
    if isinstance(objective, BinnedCrossEntropySpec):
        grades = np.linspace(*task.range, objective.bins, dtype=np.float32)
        return _softmax(outputs) @ grades
    if isinstance(objective, HingeSpec):
        return _grades(outputs[:, 0], task.range, (-1.0, 1.0))
    if isinstance(objective, MeanSquaredErrorSpec | MeanAbsoluteErrorSpec):
        return _grades(outputs[:, 0], task.range, objective.targets or task.range)
    raise TercetError(f"Objective `{objective.kind}` gives no predictions.")


def _grades(values: Floats, labels: Range, targets: Range) -> Floats:
    """Values [n] on the range that a head was trained on, to grades on the task's own."""
    slope = (targets[1] - targets[0]) / (labels[1] - labels[0])
    grades = (values - np.float32(targets[0] - slope * labels[0])) / np.float32(slope)
    cut: Floats = np.clip(grades, np.float32(labels[0]), np.float32(labels[1]))
    return cut


def _softmax(outputs: Floats) -> Floats:
    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True, initial=-np.inf))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares
