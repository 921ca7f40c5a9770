"""Outputs of heads to probabilities and grades, in numpy: the same for torch and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Range = tuple[float, float]
EVEN = 0.5
"""The probability from which on a label is predicted, where no other threshold was chosen."""


def softmax(outputs: Floats) -> Floats:
    """outputs [n, classes] -> probabilities [n, classes]"""
    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True, initial=-np.inf))
    probabilities: Floats = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


def sigmoid(outputs: Floats) -> Floats:
    """Outputs of any shape -> probabilities of that shape."""
    # By the hyperbolic tangent, which does not overflow.
    half = np.float32(0.5)
    probabilities: Floats = half * (np.tanh(outputs / np.float32(2)) + np.float32(1))
    return probabilities


def decisions(
    probabilities: Floats, thresholds: Sequence[float] | None = None
) -> NDArray[np.bool_]:
    """Which labels a row has: independent probabilities [n, classes] -> bool [n, classes].

    thresholds: of each label, the least probability at which it is predicted; default: one half
    """
    least = np.asarray(EVEN if thresholds is None else thresholds, np.float32)
    chosen: NDArray[np.bool_] = probabilities >= least
    return chosen


def to_grades(values: Floats, *, labels: Range | None, targets: Range | None) -> Floats:
    """Values [n] on the range `targets` that a head was trained on -> grades [n] in `labels`."""
    if labels is None:
        return values
    low, high = targets or labels
    slope = (high - low) / (labels[1] - labels[0])
    grades = (values - np.float32(low - slope * labels[0])) / np.float32(slope)
    clipped: Floats = np.clip(grades, np.float32(labels[0]), np.float32(labels[1]))
    return clipped
