"""Linear models fitted exactly: logistic regression for classes, ridge regression for grades."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.specs import Floats

STRENGTH = 1.0
"""scikit-learn's C: the weight of the rows against that of small weights."""
ALPHAS = tuple(10.0**power for power in range(-2, 5))
"""Of ridge regression; the best is chosen by leave-one-out errors."""
STEPS = 1000
NEVER = 10.0
"""By how much the output of a class without training rows is below the lowest other one."""


@dataclass(frozen=True, slots=True)
class LinearModel:
    """weights: float32 [outputs, k]; bias: float32 [outputs]"""

    weights: Floats
    bias: Floats

    def outputs(self, inputs: Floats) -> Floats:
        """inputs [n, k] -> [n, outputs]"""
        result: Floats = inputs @ self.weights.T + self.bias
        return result


def fit_classes(
    inputs: Floats,
    labels: Labels,
    *,
    outputs: int,
    blocks: Sequence[int] | None = None,
    class_weights: NDArray[Any] | None = None,
) -> LinearModel:
    """Logistic regression.

    inputs: float32 [n, k]
    labels: class numbers [n], or 0 and 1 [n, outputs] where rows have several
    outputs: one per class, or 1 for the log-odds of class 1
    blocks: widths of parts of the inputs that are scaled to the same mean length first
    class_weights: of the classes, or of the rows that have each label
    """
    scale = _scales(inputs, blocks)
    scaled = inputs / scale
    if labels.ndim == 2:
        parts = [
            _two_classes(scaled, labels[:, place], _pair_weights(class_weights, place))
            for place in range(outputs)
        ]
        model = LinearModel(
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.bias for part in parts]),
        )
    elif outputs == 1:
        model = _two_classes(scaled, labels, class_weights)
    else:
        model = _many_classes(scaled, labels, outputs, class_weights)
    return LinearModel((model.weights / scale).astype(np.float32), model.bias)


def fit_grades(
    inputs: Floats, grades: Floats, *, blocks: Sequence[int] | None = None
) -> LinearModel:
    """Ridge regression of grades [n] on inputs float32 [n, k]."""
    from sklearn.linear_model import RidgeCV

    scale = _scales(inputs, blocks)
    fitted = RidgeCV(alphas=ALPHAS).fit(inputs / scale, np.asarray(grades, np.float64))
    weights = (fitted.coef_ / scale)[None].astype(np.float32)
    return LinearModel(weights, np.array([fitted.intercept_], np.float32))


def _scales(inputs: Floats, blocks: Sequence[int] | None) -> Floats:
    """The root of the mean squared length of each block, for each of its columns: [k]."""
    widths = list(blocks or [inputs.shape[1]])
    ends = np.cumsum(widths)
    squares = (inputs.astype(np.float64) ** 2).mean(axis=0)
    lengths = [
        float(np.sqrt(squares[end - width : end].sum()))
        for width, end in zip(widths, ends, strict=True)
    ]
    return np.repeat([length or 1.0 for length in lengths], widths).astype(np.float32)


def _two_classes(inputs: Floats, labels: Labels, weights: NDArray[Any] | None) -> LinearModel:
    """The log-odds of class 1."""
    count, positives = len(labels), int((labels == 1).sum())
    if positives in (0, count):
        # Smoothed, as if there was half a row more of each class.
        odds = np.log((positives + 0.5) / (count - positives + 0.5))
        return LinearModel(np.zeros((1, inputs.shape[1]), np.float32), np.array([odds], np.float32))
    fitted = _logistic(inputs, labels, weights)
    return LinearModel(fitted.coef_.astype(np.float32), fitted.intercept_.astype(np.float32))


def _many_classes(
    inputs: Floats, labels: Labels, outputs: int, weights: NDArray[Any] | None
) -> LinearModel:
    """The logits of all classes; a class without rows is the least likely."""
    known = np.unique(labels)
    coefficients = np.zeros((outputs, inputs.shape[1]), np.float32)
    bias = np.zeros(outputs, np.float32)
    if len(known) == 2:
        half = _two_classes(inputs, (labels == known[1]).astype(np.int64), _of(weights, known))
        coefficients[known] = np.concatenate([-half.weights, half.weights]) / 2
        bias[known] = np.concatenate([-half.bias, half.bias]) / 2
    elif len(known) > 2:
        fitted = _logistic(inputs, labels, weights)
        coefficients[known], bias[known] = fitted.coef_, fitted.intercept_
    absent = np.setdiff1d(np.arange(outputs), known)
    bias[absent] = bias[known].min() - NEVER
    return LinearModel(coefficients, bias)


def _logistic(inputs: Floats, labels: Labels, weights: NDArray[Any] | None) -> Any:
    from sklearn.linear_model import LogisticRegression

    by_class = None if weights is None else dict(enumerate(np.asarray(weights, float).tolist()))
    with warnings.catch_warnings():
        # With few rows per class; `fit` says so in its own words.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model = LogisticRegression(C=STRENGTH, max_iter=STEPS, class_weight=by_class)
        return model.fit(inputs, labels)


def _of(weights: NDArray[Any] | None, classes: NDArray[Any]) -> NDArray[Any] | None:
    return None if weights is None else np.asarray(weights)[classes]


def _pair_weights(weights: NDArray[Any] | None, label: int) -> NDArray[Any] | None:
    """The weights of rows without and with a label."""
    return None if weights is None else np.array([1.0, float(weights[label])])
