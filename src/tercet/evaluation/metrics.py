"""Metrics of predictions against labels; None where a metric is undefined, never NaN."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import TercetError

Values = dict[str, float | None]
"""By metric."""
Bounds = tuple[float, float]
CLASS_METRICS = ("accuracy", "macro-f1", "f1")
GRADE_METRICS = ("pearson", "spearman")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a metric, None where it is undefined, and its 95 % interval if it has one."""

    value: float | None
    interval: Bounds | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def predicted_classes(probabilities: ArrayLike) -> NDArray[np.int64]:
    """Probabilities [n, classes], or of class 1 [n], to the likeliest classes int64 [n]."""
    array = np.asarray(probabilities)
    return (array > 0.5).astype(np.int64) if array.ndim == 1 else array.argmax(axis=1)


def is_binary(probabilities: ArrayLike) -> bool:
    """Whether probabilities [n, classes] or [n] are of two classes."""
    shape = np.shape(probabilities)
    return len(shape) == 1 or shape[1] == 2


def check_predictions(
    labels: ArrayLike, predictions: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both as float64; a TercetError where they differ in rows or hold NaN or infinity."""
    checked = np.asarray(labels, np.float64), np.asarray(predictions, np.float64)
    if len(checked[0]) != len(checked[1]):
        raise TercetError(
            f"{len(checked[0])} labels and {len(checked[1])} predictions: there must be as many"
        )
    for what, values in zip(("label", "prediction"), checked, strict=True):
        places = np.argwhere(~np.isfinite(values))
        if len(places):
            raise TercetError(f"the {what} of row {places[0, 0]} is not a finite number")
    return checked


def classification_metrics(labels: ArrayLike, probabilities: ArrayLike) -> Values:
    """Accuracy and macro-F1, and F1 of class 1 where there are two classes.

    labels: class numbers [n]
    probabilities: [n, classes], or of class 1 [n]
    """
    truth, checked = check_predictions(labels, probabilities)
    names = CLASS_METRICS if is_binary(checked) else CLASS_METRICS[:2]
    if not len(truth):
        return dict.fromkeys(names)
    from sklearn.metrics import accuracy_score, f1_score

    classes = truth.astype(np.int64), predicted_classes(checked)
    values: Values = {
        "accuracy": _defined(accuracy_score(*classes)),
        "macro-f1": _defined(f1_score(*classes, average="macro")),
    }
    if "f1" in names:
        f1 = f1_score(*classes, labels=[1], average=None, zero_division=np.nan)
        values["f1"] = _defined(f1[0])
    return values


def grade_metrics(labels: ArrayLike, values: ArrayLike) -> Values:
    """Pearson and Spearman correlation of grades [n] and values [n]."""
    grades, checked = check_predictions(labels, values)
    if not (_varies(grades) and _varies(checked)):
        return dict.fromkeys(GRADE_METRICS)
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        pearson = stats.pearsonr(grades, checked).statistic
    spearman = stats.spearmanr(grades, checked).statistic
    return {"pearson": _defined(pearson), "spearman": _defined(spearman)}


def measure(metric: str, labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """One metric of classes or grades; None where it is undefined."""
    values = grade_metrics if metric in GRADE_METRICS else classification_metrics
    return values(labels, predictions)[metric]


def overall(scores: Mapping[str, float | None], *, shifted: AbstractSet[str]) -> Values:
    """Mean of the tasks' scores, plain and with (r + 1) / 2 for correlations.

    scores: one per task
    shifted: the tasks whose score is a correlation
    """
    values = [score for score in scores.values() if score is not None]
    if not values or len(values) < len(scores):
        return {"mean": None, "mean-shifted": None}
    moved = [
        (value + 1.0) / 2.0 if task in shifted else value
        for task, value in zip(scores, values, strict=True)
    ]
    return {"mean": math.fsum(values) / len(values), "mean-shifted": math.fsum(moved) / len(moved)}


def _varies(values: NDArray[np.float64]) -> bool:
    return len(values) > 0 and bool(values.min() < values.max())


def _defined(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
