"""Figures of predictions against labels; None where a figure is undefined, never NaN."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import TercetError

Figures = dict[str, float | None]
CLASS_METRICS = ("accuracy", "macro-f1", "f1")
GRADE_METRICS = ("pearson", "spearman")


def predicted_classes(probabilities: ArrayLike) -> NDArray[np.int64]:
    """Probabilities [n, classes], or of class 1 [n], to the likeliest classes int64 [n]."""
    found = np.asarray(probabilities)
    return (found > 0.5).astype(np.int64) if found.ndim == 1 else found.argmax(axis=1)


def is_binary(probabilities: ArrayLike) -> bool:
    """Whether probabilities [n, classes] or [n] tell two classes apart."""
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


def classification_metrics(labels: ArrayLike, probabilities: ArrayLike) -> Figures:
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
    figures: Figures = {
        "accuracy": _defined(accuracy_score(*classes)),
        "macro-f1": _defined(f1_score(*classes, average="macro")),
    }
    if "f1" in names:
        f1 = f1_score(*classes, labels=[1], average=None, zero_division=np.nan)
        figures["f1"] = _defined(f1[0])
    return figures


def grade_metrics(labels: ArrayLike, values: ArrayLike) -> Figures:
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


def overall(scores: Mapping[str, float | None], *, shifted: AbstractSet[str]) -> Figures:
    """Mean of the tasks' figures, plain and with (r + 1) / 2 for the correlations.

    scores: one figure a task
    shifted: the tasks whose figure is a correlation
    """
    figures = [score for score in scores.values() if score is not None]
    if not figures or len(figures) < len(scores):
        return {"mean": None, "mean-shifted": None}
    moved = [
        (figure + 1.0) / 2.0 if task in shifted else figure
        for task, figure in zip(scores, figures, strict=True)
    ]
    return {
        "mean": math.fsum(figures) / len(figures),
        "mean-shifted": math.fsum(moved) / len(moved),
    }


def _varies(values: NDArray[np.float64]) -> bool:
    return len(values) > 0 and bool(values.min() < values.max())


def _defined(figure: float) -> float | None:
    return float(figure) if math.isfinite(figure) else None
