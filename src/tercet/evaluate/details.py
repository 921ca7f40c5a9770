"""What lies behind a task's figures: which classes are mixed up, which rows, at which lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.evaluate.bootstrap import interval
from tercet.evaluate.metrics import (
    GRADE_METRICS,
    check_predictions,
    classification_metrics,
    grade_metrics,
    predicted_classes,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LENGTH_BINS = 6
SEED = 11711


def measure(metric: str, labels: ArrayLike, predictions: ArrayLike) -> float | None:
    """One metric of classes or grades; None where it is undefined."""
    figures = grade_metrics if metric in GRADE_METRICS else classification_metrics
    return figures(labels, predictions)[metric]


def confusion(labels: ArrayLike, predicted: ArrayLike, *, classes: int) -> Ints:
    """How often each class was taken for each: [expected, predicted]."""
    places = np.asarray(labels, np.int64) * classes + np.asarray(predicted, np.int64)
    return np.bincount(places, minlength=classes * classes).reshape(classes, classes)


def shares(counts: Ints) -> list[list[float | None]]:
    """Each row of a confusion matrix as shares of its class; None where the class never occurs."""
    return [
        [float(count) / total if total else None for count in row]
        for row, total in zip(counts, counts.sum(axis=1), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    """Precision and recall of saying class 1 from each threshold on, and their average precision.

    precision, recall: [k + 1], the last of them 1 and 0, where nothing is said
    thresholds: the distinct probabilities, rising [k]
    """

    precision: Floats
    recall: Floats
    thresholds: Floats
    average: float


def precision_recall(labels: ArrayLike, probabilities: ArrayLike) -> PrecisionRecall | None:
    """The curve of labels 0 and 1 [n] and probabilities of class 1 [n]; None without a class 1."""
    truth, checked = check_predictions(labels, probabilities)
    if not truth.any():
        return None
    order = np.argsort(-checked, kind="stable")
    ranked, hits = checked[order], np.cumsum(truth[order])
    ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    precision = hits[ends] / (ends + 1)
    recall = hits[ends] / hits[-1]
    average = float(np.sum(np.diff(recall, prepend=0.0) * precision))
    return PrecisionRecall(
        precision=np.append(precision[::-1], 1.0),
        recall=np.append(recall[::-1], 0.0),
        thresholds=ranked[ends][::-1],
        average=average,
    )


@dataclass(frozen=True, slots=True)
class Mistake:
    """A row that a model got wrong: a class it was sure of, or a grade far off.

    weight: the probability of the wrong class, or how far off the grade is
    """

    row: int
    expected: float
    predicted: float
    weight: float


def mistakes(labels: ArrayLike, predictions: ArrayLike, *, graded: bool, top: int) -> list[Mistake]:
    """The most confident wrong classes, or the grades that are furthest off, the worst first."""
    truth, found = check_predictions(labels, predictions)
    if graded:
        said, weights = found, np.abs(found - truth)
        wrong = np.flatnonzero(weights > 0.0)
    else:
        said = predicted_classes(found).astype(np.float64)
        weights = confidence(found)
        wrong = np.flatnonzero(said != truth)
    worst = wrong[np.argsort(-weights[wrong], kind="stable")][:top]
    return [
        Mistake(int(row), float(truth[row]), float(said[row]), float(weights[row])) for row in worst
    ]


def confidence(probabilities: Floats) -> Floats:
    """Probabilities [n, classes], or of class 1 [n], to those of the likeliest classes [n]."""
    if probabilities.ndim == 1:
        return np.maximum(probabilities, 1.0 - probabilities)
    best: Floats = probabilities.max(axis=1)
    return best


@dataclass(frozen=True, slots=True)
class LengthBin:
    """A task's metric over the rows of some lengths; None where it is undefined."""

    shortest: int
    longest: int
    rows: int
    value: float | None
    interval: tuple[float, float] | None


def by_length(
    metric: str, labels: ArrayLike, predictions: ArrayLike, lengths: ArrayLike
) -> list[LengthBin]:
    """A metric over rows of like length, in bins of about as many rows each.

    lengths: words of each row [n]
    """
    truth, found = check_predictions(labels, predictions)
    words = np.asarray(lengths, np.int64)
    bins = []
    for low, high in _length_bounds(words):
        rows = np.flatnonzero((words >= low) & (words <= high))
        picked = truth[rows], found[rows]
        value = measure(metric, *picked)
        bounds = None if value is None else interval(metric, *picked, SEED)
        bins.append(LengthBin(low, high, len(rows), value, bounds))
    return bins


def _length_bounds(words: Ints) -> list[tuple[int, int]]:
    """Shortest and longest of each bin; a bin never splits rows of one length."""
    if not len(words):
        return []
    cuts = np.quantile(words, np.arange(1, LENGTH_BINS) / LENGTH_BINS, method="lower")
    which = np.searchsorted(np.unique(cuts), words, side="left")
    return [
        (int(words[which == one].min()), int(words[which == one].max())) for one in np.unique(which)
    ]


def word_counts(columns: Sequence[Sequence[str]]) -> Ints:
    """Words of each row, both sentences of a pair together: [n]."""
    counts = np.array([[len(text.split()) for text in column] for column in columns], np.int64)
    total: Ints = counts.sum(axis=0)
    return total
