"""Intervals of the metrics: Wilson's for shares of rows, percentile bootstrap for the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.errors import TercetError
from tercet.evaluation.metrics import (
    CLASS_METRICS,
    GRADE_METRICS,
    LABEL_METRICS,
    Bounds,
    Estimate,
    Values,
    check_predictions,
    has_several_labels,
    is_binary,
    predicted_classes,
)

RESAMPLES = 1_000
PERCENTILES = (2.5, 97.5)
LEVEL = 0.95
ROUNDING = 1e-9
_CHUNK = 1 << 18
"""Values drawn at a time: small enough to stay in the processor's cache."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def paired_differences(
    metric: str, labels: ArrayLike, first: ArrayLike, second: ArrayLike, seed: int
) -> Floats:
    """The metric of the second predictions minus that of the first, on the same resampled rows.

    labels, first, second: as `interval` takes labels and predictions
    Returns [resamples], without those in which either is undefined.
    """
    truth, before = check_predictions(labels, first)
    _, after = check_predictions(labels, second)
    values: Sequence[Floats]
    if has_several_labels(truth):
        values = [*_label_values(metric, truth, (before, after), np.random.default_rng(seed))]
    elif metric in GRADE_METRICS:
        # Generators of the same seed draw the same rows.
        values = [
            _grade_values(metric, truth, predicted, np.random.default_rng(seed))
            for predicted in (before, after)
        ]
    else:
        columns = truth.astype(np.int64), predicted_classes(before), predicted_classes(after)
        cells, draws = _class_draws(columns, np.random.default_rng(seed))
        values = [_cell_values(metric, cells[[0, which]], draws) for which in (1, 2)]
    differences = values[1] - values[0]
    return differences[np.isfinite(differences)]


def interval(metric: str, labels: ArrayLike, predictions: ArrayLike, seed: int) -> Bounds | None:
    """The 95 % interval of a metric; None where the metric is undefined or rows cannot tell.

    A share of rows, such as the accuracy, has Wilson's interval, which is also right for few rows
    and for 100 %. Other metrics have a bootstrap over rows, which cannot tell anything if every
    resample has the same value, as those of a model that is right on all rows.

    labels: class numbers or grades [n], or 0 and 1 [n, classes] where rows have several labels
    predictions: probabilities [n, classes] or [n], values [n], or 0 and 1 [n, classes], as the
        metric itself takes them
    """
    truth, checked = check_predictions(labels, predictions)
    generator = np.random.default_rng(seed)
    if has_several_labels(truth) and metric in LABEL_METRICS:
        if metric == "exact-match":
            return _wilson((truth == checked).all(axis=1))
        return _percentiles(_label_values(metric, truth, (checked,), generator)[0])
    if metric == "f1" and not is_binary(checked):
        raise TercetError("metric 'f1' needs two classes: use 'macro-f1'")
    if metric in CLASS_METRICS:
        columns = truth.astype(np.int64), predicted_classes(checked)
        if metric == "accuracy":
            return _wilson(columns[0] == columns[1])
        return _percentiles(_cell_values(metric, *_class_draws(columns, generator)))
    if metric in GRADE_METRICS:
        return _percentiles(_grade_values(metric, truth, checked, generator))
    known = ", ".join(dict.fromkeys((*CLASS_METRICS, *LABEL_METRICS, *GRADE_METRICS)))
    raise TercetError(f"metric {metric!r} is unknown: use {known}")


def estimates(
    values: Values, labels: ArrayLike, predictions: ArrayLike, seed: int
) -> dict[str, Estimate]:
    """The values of metrics with their intervals."""
    return {
        metric: Estimate(value, interval(metric, labels, predictions, seed))
        for metric, value in values.items()
    }


def _wilson(right: NDArray[np.bool_]) -> Bounds | None:
    """right: whether each row is right [n]"""
    if not len(right):
        return None
    from scipy.stats import binomtest

    share = binomtest(int(right.sum()), len(right)).proportion_ci(LEVEL, method="wilson")
    return float(share.low), float(share.high)


def _percentiles(values: Floats) -> Bounds | None:
    defined = values[np.isfinite(values)]
    if not len(defined) or np.ptp(defined) < ROUNDING:
        return None
    low, high = np.percentile(defined, PERCENTILES)
    return float(low), float(high)


def _class_draws(columns: tuple[Ints, ...], generator: np.random.Generator) -> tuple[Ints, Ints]:
    """The distinct rows of labels and predictions, and how often each is in each resample.

    Rows with equal label and predictions are interchangeable, so a resample of rows is one
    multinomial draw of how often each cell of the confusion matrix occurs.

    columns: classes [n] each
    Returns cells [columns, cells] and draws [resamples, cells].
    """
    rows = len(columns[0])
    if not rows:
        return np.empty((len(columns), 0), np.int64), np.empty((0, 0), np.int64)
    cells, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
    return cells, generator.multinomial(rows, counts / rows, size=RESAMPLES)


def _cell_values(metric: str, cells: Ints, draws: Ints) -> Floats:
    """The metric in each resample, [resamples]; NaN where undefined.

    cells: label and prediction of each cell [2, cells]
    """
    if not len(draws):
        return np.empty(0)
    if metric == "accuracy":
        shares: Floats = draws[:, cells[0] == cells[1]].sum(axis=1) / draws.sum(axis=1)
        return shares
    classes = np.unique(cells)[:, None] if metric == "macro-f1" else np.array([[1]])
    expected, predicted = cells[0] == classes, cells[1] == classes
    right = draws @ (expected & predicted).T.astype(np.float64)
    either = draws @ (expected.astype(np.float64) + predicted).T
    with np.errstate(invalid="ignore"):
        f1 = 2.0 * right / either
    return _mean_of_defined(f1)


def _label_values(
    metric: str, truth: Floats, sets: Sequence[Floats], generator: np.random.Generator
) -> Floats:
    """The metric of each of several predictions in each resample, [predictions, resamples].

    truth, sets: labels of rows, expected and predicted, 0 or 1 [n, classes] each
    """
    # As in `_class_draws`, equal rows are drawn together.
    cells, counts = np.unique(np.hstack([truth, *sets]), axis=0, return_counts=True)
    if not len(truth):
        return np.empty((len(sets), 0))
    expected, *predicted = np.hsplit(cells, 1 + len(sets))
    chunk = max(1, _CHUNK // len(cells))
    sizes = [min(chunk, RESAMPLES - start) for start in range(0, RESAMPLES, chunk)]
    parts = []
    for size in sizes:
        draws = generator.multinomial(len(truth), counts / len(truth), size=size).astype(np.float64)
        parts.append([_drawn_labels(metric, draws, expected, each) for each in predicted])
    return np.concatenate(parts, axis=1)


def _drawn_labels(metric: str, draws: Floats, expected: Floats, predicted: Floats) -> Floats:
    """The metric in each resample, [resamples]; NaN where undefined.

    draws: how often each cell is in each resample [resamples, cells]
    expected, predicted: the labels of each cell [cells, classes]
    """
    if metric == "exact-match":
        shares: Floats = draws @ (expected == predicted).all(axis=1) / draws.sum(axis=1)
        return shares
    right, either = draws @ (expected * predicted), draws @ (expected + predicted)
    if metric == "micro-f1":
        right, either = (each.sum(axis=1, keepdims=True) for each in (right, either))
    with np.errstate(invalid="ignore"):
        f1 = 2.0 * right / either
    return _mean_of_defined(f1)


def _mean_of_defined(values: Floats) -> Floats:
    """values [rows, columns] -> [rows], the mean without NaN; NaN where all are NaN."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        means: Floats = np.nanmean(values, axis=1)
    return means


def _grade_values(
    metric: str, grades: Floats, values: Floats, generator: np.random.Generator
) -> Floats:
    """The correlation of each resample, [resamples]; NaN where undefined."""
    if not len(grades):
        return np.empty(0)
    resamples = _resamples(len(grades), generator)
    if metric == "pearson":
        correlations = [_correlations(grades[rows], values[rows]) for rows in resamples]
    else:
        u, v = _levels(grades), _levels(values)
        correlations = [_correlations(_ranks(u[rows]), _ranks(v[rows])) for rows in resamples]
    return np.concatenate(correlations)


def _levels(values: Floats) -> Ints:
    """values [n] -> their places among the distinct values, from 0 [n]"""
    return np.unique(values, return_inverse=True)[1]


def _ranks(levels: Ints) -> Floats:
    """Average ranks within each row of levels [k, n], ties sharing theirs: [k, n]."""
    rows, width = len(levels), int(levels.max()) + 1
    places = levels + width * np.arange(rows)[:, None]
    counts = np.bincount(places.ravel(), minlength=rows * width).reshape(rows, width)
    averages: Floats = counts.cumsum(axis=1) - (counts - 1) / 2.0
    ranks: Floats = averages.ravel()[places]
    return ranks


def _resamples(count: int, generator: np.random.Generator) -> Iterator[Ints]:
    """Row numbers drawn with replacement, [some, count] at a time, RESAMPLES in all."""
    chunk = max(1, _CHUNK // count)
    for start in range(0, RESAMPLES, chunk):
        yield generator.integers(count, size=(min(chunk, RESAMPLES - start), count))


def _correlations(u: Floats, v: Floats) -> Floats:
    """Pearson's r of each row of u [k, n] with the same row of v [k, n]: [k]; NaN if constant."""
    constant = (np.ptp(u, axis=1) == 0.0) | (np.ptp(v, axis=1) == 0.0)
    u = u - u.mean(axis=1, keepdims=True)
    v = v - v.mean(axis=1, keepdims=True)
    together = np.einsum("kn,kn->k", u, v)
    apart = np.sqrt(np.einsum("kn,kn->k", u, u) * np.einsum("kn,kn->k", v, v))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(constant, np.nan, together / apart), -1.0, 1.0)
