"""Calibration of probabilities: bins, expected calibration error, thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import TercetError
from tercet.evaluation.metrics import check_predictions
from tercet.specs import Scaling

Floats = NDArray[np.float64]
BINS = 15
SMALLEST = 1e-12
"""Smaller probabilities count as this: one certain mistake must not make a mean infinite."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows whose likeliest class has a probability above `low` and up to `high`.

    confidence, accuracy: their means; None where there are no rows
    """

    low: float
    high: float
    rows: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well the confidence in the likeliest class matches the accuracy.

    ece: expected calibration error; None without rows
    nll: mean negative log-likelihood of the labels; None without rows
    scaling: the scaling of the head's outputs
    """

    ece: float | None
    nll: float | None
    bins: list[Bin]
    scaling: Scaling = field(default_factory=Scaling)

    def to_json(self) -> dict[str, Any]:
        bins = [
            {
                "from": part.low,
                "to": part.high,
                "rows": part.rows,
                "confidence": part.confidence,
                "accuracy": part.accuracy,
            }
            for part in self.bins
        ]
        return {"ece": self.ece, "nll": self.nll, **self.scaling.model_dump(), "bins": bins}


def class_probabilities(probabilities: ArrayLike) -> Floats:
    """Probabilities [n, classes], or of class 1 [n], to [n, classes]."""
    array = np.asarray(probabilities, np.float64)
    return array if array.ndim == 2 else np.stack([1.0 - array, array], axis=1)


def measure_calibration(
    labels: ArrayLike, probabilities: ArrayLike, *, scaling: Scaling | None = None
) -> Calibration:
    """Expected calibration error over bins of equal width, as in Guo et al. (2017).

    labels: class numbers [n]
    probabilities: [n, classes], or of class 1 [n]
    scaling: the one that was applied to them
    """
    scaling = scaling or Scaling()
    truth, checked = check_predictions(labels, probabilities)
    rows, classes = class_probabilities(checked), truth.astype(np.int64)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    if not len(classes):
        empty = [Bin(edges[i], edges[i + 1], 0, None, None) for i in range(BINS)]
        return Calibration(None, None, empty, scaling)
    confidence, right = rows.max(axis=1), rows.argmax(axis=1) == classes
    places = np.searchsorted(edges[1:-1], confidence)
    counts = np.bincount(places, minlength=BINS)
    sure = np.bincount(places, confidence, minlength=BINS)
    hits = np.bincount(places, right, minlength=BINS)
    bins = [
        Bin(
            low=round(float(edges[i]), 6),
            high=round(float(edges[i + 1]), 6),
            rows=int(counts[i]),
            confidence=float(sure[i] / counts[i]) if counts[i] else None,
            accuracy=float(hits[i] / counts[i]) if counts[i] else None,
        )
        for i in range(BINS)
    ]
    ece = float(np.abs(sure - hits).sum() / len(classes))
    return Calibration(ece, negative_log_likelihood(classes, rows), bins, scaling)


def negative_log_likelihood(labels: NDArray[np.int64], probabilities: Floats) -> float:
    """The mean over rows of -log p(label); labels [n], probabilities [n, classes]."""
    chosen = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(chosen, SMALLEST)).mean())


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least probability at which to predict class 1.

    accuracy, precision, recall: expected where a share `prior` of rows is of class 1
    """

    value: float
    prior: float
    accuracy: float
    precision: float
    recall: float


def choose_threshold(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    prior: float | None = None,
    precision: float | None = None,
) -> Threshold | None:
    """The threshold with the best accuracy at a prior, or with the best recall at a precision.

    labels: 0 or 1 [n]
    probabilities: of class 1 [n]
    prior: share of class 1 where the model is used; default: that of the labels
    precision: the least precision; the result is None where no threshold reaches it
    """
    from sklearn.metrics import roc_curve

    truth, checked = check_predictions(labels, probabilities)
    if checked.ndim == 2:
        checked = checked[:, 1]
    if not 0.0 < truth.sum() < len(truth):
        raise TercetError("choosing a threshold needs rows of both classes")
    share = float(truth.mean()) if prior is None else prior
    for name, value in (("prior", share), ("precision", 0.5 if precision is None else precision)):
        if not 0.0 < value < 1.0:
            raise TercetError(f"{name} {value:g} must be between 0 and 1")
    # The first point predicts class 1 for no row.
    alarms, recalls, values = (
        curve[1:] for curve in roc_curve(truth, checked, drop_intermediate=False)
    )
    precisions = share * recalls / (share * recalls + (1.0 - share) * alarms)
    accuracies = share * recalls + (1.0 - share) * (1.0 - alarms)
    if precision is None:
        best = int(accuracies.argmax())
    else:
        reached = np.flatnonzero(precisions >= precision)
        if not len(reached) or not recalls[reached[-1]]:
            return None
        best = int(reached[-1])
    return Threshold(
        value=float(values[best]),
        prior=share,
        accuracy=float(accuracies[best]),
        precision=float(precisions[best]),
        recall=float(recalls[best]),
    )
