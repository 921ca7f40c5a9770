"""The thresholds of labels, where rows may have several: chosen for F1 on rows that training did
not see."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.evaluation.metrics import check_predictions
from tercet.specs.predictions import EVEN

Floats = NDArray[np.float64]
FEWEST = 5
"""Rows with a label; from fewer than these no threshold of it is chosen."""
CANDIDATES = 100
"""Thresholds that are tried: so many quantiles of all rows, and of those with the label."""
LEAST_WIDTH = 1e-3
SMALLEST = 1e-6
"""Probabilities are kept this far from 0 and 1, whose log-odds are infinite."""


def choose_label_thresholds(labels: ArrayLike, probabilities: ArrayLike) -> list[float]:
    """Of each label, the least probability at which to predict it for the best F1.

    labels: 0 or 1 [n, classes]
    probabilities: independent [n, classes]
    It is one half where a label has too few rows, or where no other value has a better F1.
    """
    truth, checked = check_predictions(labels, probabilities)
    return [_best_threshold(*column) for column in zip(truth.T, checked.T, strict=True)]


def _best_threshold(truth: Floats, probabilities: Floats) -> float:
    """Of one label: truth 0 or 1 [n], probabilities [n]."""
    positives = truth.sum()
    if positives < FEWEST or positives == len(truth):
        return EVEN
    kept = np.clip(probabilities, SMALLEST, 1.0 - SMALLEST)
    odds = np.log(kept / (1.0 - kept))
    places = np.linspace(0.0, 1.0, CANDIDATES)
    levels = np.unique([np.quantile(each, places) for each in (odds, odds[truth == 1.0])])
    if len(levels) == 1:
        return EVEN
    # Between two levels, so that rounding moves no row across.
    candidates = (levels[:-1] + levels[1:]) / 2.0
    best = candidates[_smoothed_f1(truth, odds, candidates).argmax()]
    chosen = float(1.0 / (1.0 + np.exp(-best)))
    return chosen if _f1(truth, probabilities, chosen) > _f1(truth, probabilities, EVEN) else EVEN


def _smoothed_f1(truth: Floats, odds: Floats, candidates: Floats) -> Floats:
    """F1 at each candidate [k], as if every row stood for others with log-odds around its own.

    So a threshold is not fitted to single rows. The width of these surroundings falls with the
    number of rows that have the label.
    """
    positives = truth.sum()
    has = truth == 1.0
    within = odds[has].var() * positives + odds[~has].var() * (len(truth) - positives)
    width = max(np.sqrt(within / len(truth)) / np.cbrt(positives), LEAST_WIDTH)
    # tanh does not overflow.
    share = 0.5 + 0.5 * np.tanh((odds[:, None] - candidates) / width)
    f1: Floats = 2.0 * (truth @ share) / (share.sum(axis=0) + positives)
    return f1


def _f1(truth: Floats, probabilities: Floats, threshold: float) -> float:
    predicted = probabilities >= threshold
    return float(2.0 * truth[predicted].sum() / (truth.sum() + predicted.sum()))
