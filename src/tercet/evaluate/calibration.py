"""How far probabilities can be trusted: bins, expected calibration error, thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import TercetError
from tercet.evaluate.metrics import check_predictions
from tercet.specs import Scaling

Floats = NDArray[np.float64]
BINS = 15
SMALLEST = 1e-12
"""Probabilities below it count as it, so that one certain mistake does not make a mean infinite."""


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
    """How well the probabilities of the likeliest classes tell how often these are right.

    ece: expected calibration error; None without rows
    nll: mean negative log-likelihood of the labels; None without rows
    scaling: what the head's outputs went through
    """

    ece: float | None
    nll: float | None
    bins: list[Bin]
    scaling: Scaling = field(default_factory=Scaling)

    def to_json(self) -> dict[str, Any]:
        bins = [
            {
                "from": one.low,
                "to": one.high,
                "rows": one.rows,
                "confidence": one.confidence,
                "accuracy": one.accuracy,
            }
            for one in self.bins
        ]
        return {"ece": self.ece, "nll": self.nll, **self.scaling.model_dump(), "bins": bins}


def class_probabilities(probabilities: ArrayLike) -> Floats:
    """Probabilities [n, classes], or of class 1 [n], to [n, classes]."""
    found = np.asarray(probabilities, np.float64)
    return found if found.ndim == 2 else np.stack([1.0 - found, found], axis=1)


def measure_calibration(
    labels: ArrayLike, probabilities: ArrayLike, *, scaling: Scaling | None = None
) -> Calibration:
    """Expected calibration error over bins of equal width, as Guo et al. (2017) have it.

    labels: class numbers [n]
    probabilities: [n, classes], or of class 1 [n]
    scaling: the one that they were made with
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
    """From which probability on to say class 1, and what comes of it at a prior.

    accuracy, precision, recall: as expected where the share `prior` of rows is of class 1
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
    """The threshold of the best accuracy at a prior, or of the best recall at a precision.

    labels: 0 or 1 [n]
    probabilities: of class 1 [n]
    prior: share of class 1 where the model will be used; that of the labels when left out
    precision: the least precision wanted; None is given back where no threshold reaches it
    """
    truth, checked = check_predictions(labels, probabilities)
    if checked.ndim == 2:
        checked = checked[:, 1]
    positives = float(truth.sum())
    if not 0.0 < positives < len(truth):
        raise TercetError("a threshold needs rows of both classes to choose it on")
    share = positives / len(truth) if prior is None else prior
    for name, value in (("prior", share), ("precision", 0.5 if precision is None else precision)):
        if not 0.0 < value < 1.0:
            raise TercetError(f"{name} {value:g} must lie between 0 and 1")
    order = np.argsort(-checked, kind="stable")
    ranked, hits = checked[order], np.cumsum(truth[order])
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    recalls = hits[ends] / positives
    alarms = (ends + 1 - hits[ends]) / (len(truth) - positives)
    said = share * recalls + (1.0 - share) * alarms
    precisions = share * recalls / said
    accuracies = share * recalls + (1.0 - share) * (1.0 - alarms)
    if precision is None:
        best = int(accuracies.argmax())
    else:
        reached = np.flatnonzero(precisions >= precision)
        if not len(reached) or not recalls[reached[-1]]:
            return None
        best = int(reached[-1])
    return Threshold(
        value=float(ranked[ends[best]]),
        prior=share,
        accuracy=float(accuracies[best]),
        precision=float(precisions[best]),
        recall=float(recalls[best]),
    )
