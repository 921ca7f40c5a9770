from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as peer

from tercet.errors import TercetError
from tercet.evaluation.bootstrap import interval, paired_differences
from tercet.evaluation.metrics import (
    classification_metrics,
    grade_metrics,
    measure,
    multi_label_metrics,
)

ALL = ("accuracy", "macro-f1", "f1", "pearson", "spearman")


def sample(
    metric: str, *, rows: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels, and predictions that are right more often than not, with ties."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=rows)
    if metric in ("pearson", "spearman"):
        labels = generator.integers(11, size=rows) / 2.0
        return labels, (labels + 2.0 * noise).round()
    classes = 2 if metric == "f1" else 4
    labels = generator.integers(classes, size=rows)
    scores = generator.random((rows, classes))
    scores[np.arange(rows), labels] += 0.4
    return labels.astype(np.float64), scores / scores.sum(axis=1, keepdims=True)


def figure_of(metric: str, labels: NDArray[np.float64], predictions: NDArray[np.float64]) -> float:
    figures = grade_metrics if metric in ("pearson", "spearman") else classification_metrics
    found = figures(labels, predictions)[metric]
    assert found is not None
    return found


@pytest.mark.parametrize("metric", ALL)
def test_interval_agrees_with_resampling_row_by_row(metric: str) -> None:
    labels, predictions = sample(metric, rows=150)
    generator = np.random.default_rng(5)
    said = predictions if predictions.ndim == 1 else predictions.argmax(axis=1)
    peers = {
        "accuracy": lambda a, b: np.mean(a == b),
        "macro-f1": lambda a, b: peer.f1_score(a, b, average="macro"),
        "f1": peer.f1_score,
        "pearson": lambda a, b: stats.pearsonr(a, b).statistic,
        "spearman": lambda a, b: stats.spearmanr(a, b).statistic,
    }
    draws = generator.integers(150, size=(600, 150))
    figures = [peers[metric](labels[rows], said[rows]) for rows in draws]
    spread = np.std(figures)
    for seed in range(3):
        found = interval(metric, labels, predictions, seed)
        assert found == pytest.approx(np.percentile(figures, [2.5, 97.5]), abs=0.5 * spread)


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_correlations_of_the_same_draws_equal_scipys(metric: str) -> None:
    labels, values = sample(metric, rows=12)
    # The mean of twelve of these is not exact, so constant draws do not cancel to zero by luck.
    values[:10] = 0.7
    correlate = stats.pearsonr if metric == "pearson" else stats.spearmanr
    figures = [
        correlate(labels[rows], values[rows]).statistic
        for rows in np.random.default_rng(7).integers(12, size=(1_000, 12))
        if np.ptp(labels[rows]) > 0 and np.ptp(values[rows]) > 0
    ]
    assert len(figures) < 1_000
    found = interval(metric, labels, values, 7)
    assert found == pytest.approx(np.percentile(figures, [2.5, 97.5]))


@pytest.mark.parametrize("metric", ALL)
@settings(max_examples=15, deadline=None)
@given(rows=st.integers(30, 400), seed=st.integers(0, 1_000))
def test_interval_lies_round_the_figure(metric: str, rows: int, seed: int) -> None:
    labels, predictions = sample(metric, rows=rows, seed=seed)
    found = interval(metric, labels, predictions, seed)
    assert found is not None
    low, high = found
    assert -1.0 <= low <= figure_of(metric, labels, predictions) <= high <= 1.0


@pytest.mark.parametrize("metric", [name for name in ALL if name != "accuracy"])
def test_interval_is_a_function_of_the_seed(metric: str) -> None:
    labels, predictions = sample(metric, rows=100)
    assert interval(metric, labels, predictions, 1) == interval(metric, labels, predictions, 1)
    assert interval(metric, labels, predictions, 1) != interval(metric, labels, predictions, 2)


@pytest.mark.parametrize("metric", ALL)
def test_more_rows_make_it_narrower(metric: str) -> None:
    widths = []
    for rows in (100, 1_600):
        found = interval(metric, *sample(metric, rows=rows), 0)
        assert found is not None
        widths.append(found[1] - found[0])
    assert widths[1] == pytest.approx(widths[0] / 4, rel=0.35)


@pytest.mark.parametrize(("right", "rows"), [(12, 12), (0, 12), (1, 1), (37, 40), (1500, 2000)])
def test_interval_of_a_share_of_rows_is_wilsons(right: int, rows: int) -> None:
    """By the formula; a bootstrap would give 100 % of twelve rows no width."""
    labels = np.zeros(rows)
    said = np.where(np.arange(rows) < right, 0.0, 1.0)
    z, share = stats.norm.ppf(0.975), right / rows
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2)
    expected = pytest.approx((middle - half, middle + half), abs=1e-9)
    assert interval("accuracy", labels, said, 0) == expected
    several = np.stack([labels, labels], axis=1), np.stack([labels, said], axis=1)
    assert interval("exact-match", *several, 0) == expected


def test_rows_that_are_all_right_cannot_tell_the_interval_of_other_metrics() -> None:
    labels = np.array([0, 1, 1, 0] * 10)
    for metric in ("f1", "macro-f1"):
        assert interval(metric, labels, labels.astype(float), 0) is None


@pytest.mark.parametrize(
    ("metric", "labels", "predictions"),
    [
        ("pearson", [1.0, 2.0], [3.0, 3.0]),
        ("spearman", [1.0, 1.0], [3.0, 4.0]),
        ("pearson", [1.0], [1.0]),
        ("f1", [0, 0], [0.1, 0.2]),
        ("accuracy", [], []),
        ("spearman", [], []),
    ],
)
def test_undefined_metrics_have_no_interval(
    metric: str, labels: list[float], predictions: list[float]
) -> None:
    assert interval(metric, labels, predictions, 0) is None


@pytest.mark.parametrize(
    ("metric", "predictions", "named"),
    [
        ("recall", [0.1, 0.9], "recall"),
        ("accuracy", [0.1, np.nan], "row 1"),
        ("accuracy", [0.1], "2 labels"),
        ("f1", np.eye(3)[:2], "macro-f1"),
    ],
)
def test_mistakes_are_named(metric: str, predictions: object, named: str) -> None:
    with pytest.raises(TercetError, match=named):
        interval(metric, [0, 1], predictions, 0)  # type: ignore[arg-type]


def test_intervals_of_several_labels_agree_with_resampling_row_by_row() -> None:
    generator = np.random.default_rng(4)
    truth = (generator.random((150, 4)) < 0.4).astype(np.int64)
    found = np.where(generator.random((150, 4)) < 0.2, 1 - truth, truth)
    draws = generator.integers(150, size=(600, 150))
    figures = [multi_label_metrics(truth[rows], found[rows]) for rows in draws]
    for metric in ("micro-f1", "macro-f1", "exact-match"):
        values = np.array([each[metric] for each in figures], float)
        expected = pytest.approx(np.percentile(values, [2.5, 97.5]), abs=0.5 * np.std(values))
        for seed in range(3):
            assert interval(metric, truth, found, seed) == expected
        assert interval(metric, truth[:0], found[:0], 0) is None


def test_differences_of_several_labels_are_paired() -> None:
    generator = np.random.default_rng(4)
    truth = (generator.random((80, 3)) < 0.4).astype(np.int64)
    found = np.where(generator.random((80, 3)) < 0.2, 1 - truth, truth)
    assert not paired_differences("micro-f1", truth, found, found, 1).any()
    better = paired_differences("micro-f1", truth, found, truth, 1)
    assert better.mean() == pytest.approx(1.0 - measure("micro-f1", truth, found), abs=0.02)
