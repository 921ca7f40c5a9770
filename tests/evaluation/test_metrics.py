from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as peer

from tercet.errors import TercetError
from tercet.evaluation.metrics import (
    classification_metrics,
    grade_metrics,
    overall,
    predicted_classes,
)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 60), classes=st.integers(2, 6))
def test_classification_agrees_with_scikit_learn(seed: int, rows: int, classes: int) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    probabilities = generator.dirichlet(np.ones(classes), size=rows)
    said = probabilities.argmax(axis=1)
    figures = classification_metrics(labels, probabilities)
    assert figures["accuracy"] == pytest.approx(peer.accuracy_score(labels, said))
    assert figures["macro-f1"] == pytest.approx(peer.f1_score(labels, said, average="macro"))
    if classes > 2:
        assert "f1" not in figures
    elif labels.any() or said.any():
        assert figures["f1"] == pytest.approx(
            peer.f1_score(labels, said, labels=[1], average="micro")
        )
    else:
        assert figures["f1"] is None


def test_classification_worked_by_hand() -> None:
    # One hit, one false alarm, one miss, one right rejection.
    figures = classification_metrics([1, 0, 1, 0], [0.9, 0.8, 0.1, 0.5])
    assert figures == {"accuracy": 0.5, "macro-f1": 0.5, "f1": 0.5}


def test_one_and_two_columns_of_probabilities_agree() -> None:
    generator = np.random.default_rng(0)
    labels, ones = generator.integers(2, size=50), generator.random(50).round(1)
    both = np.stack([1.0 - ones, ones], axis=1)
    assert classification_metrics(labels, ones) == classification_metrics(labels, both)
    assert predicted_classes(ones).tolist() == predicted_classes(both).tolist()


def test_f1_is_undefined_without_class_1() -> None:
    figures = classification_metrics([0, 0], [0.1, 0.2])
    assert figures == {"accuracy": 1.0, "macro-f1": 1.0, "f1": None}
    assert classification_metrics([0, 1], [0.1, 0.2])["f1"] == 0.0


def test_constant_classes_have_defined_figures() -> None:
    figures = classification_metrics([0, 1, 2, 2], np.eye(3)[[2, 2, 2, 2]])
    assert figures["accuracy"] == 0.5
    assert figures["macro-f1"] == pytest.approx((0 + 0 + 2 / 3) / 3)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), rows=st.integers(2, 60), levels=st.sampled_from([2, 5, 26, 10**6])
)
def test_grades_agree_with_scipy_with_and_without_ties(seed: int, rows: int, levels: int) -> None:
    generator = np.random.default_rng(seed)
    labels = generator.integers(levels, size=rows) / 5.0
    values = generator.integers(levels, size=rows) / 7.0
    labels[:2], values[:2] = (0.0, 1.0), (0.0, 1.0)
    assert grade_metrics(labels, values) == {
        "pearson": pytest.approx(stats.pearsonr(labels, values).statistic),
        "spearman": pytest.approx(stats.spearmanr(labels, values).statistic),
    }


def test_grades_worked_by_hand() -> None:
    figures = grade_metrics([1.0, 2.0, 3.0], [1.0, 8.0, 27.0])
    assert figures["spearman"] == pytest.approx(1.0)
    assert figures["pearson"] == pytest.approx(26.0 / np.sqrt(2.0 * 362.0))


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        ([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]),
        ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0]),
        ([1.0], [1.0]),
        ([], []),
    ],
)
def test_a_constant_leaves_correlations_undefined(labels: list[float], values: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grade_metrics(labels, values) == {"pearson": None, "spearman": None}


def test_extreme_values_never_give_nan() -> None:
    for values in ([1.0, 1.0, 1.0 + 1e-15], [0.0, 1e-320, 0.0], [1e300, -1e300, 1.0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for figure in grade_metrics([1.0, 2.0, 3.0], values).values():
                assert figure is None or -1.0 <= figure <= 1.0


def test_no_rows_leave_everything_undefined() -> None:
    undefined = {"accuracy": None, "macro-f1": None, "f1": None}
    assert classification_metrics([], []) == undefined
    assert classification_metrics([], np.empty((0, 2))) == undefined


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_is_no_number_is_named(bad: float) -> None:
    with pytest.raises(TercetError, match="prediction of row 1"):
        grade_metrics([1.0, 2.0], [1.0, bad])
    with pytest.raises(TercetError, match="label of row 0"):
        grade_metrics([bad, 2.0], [1.0, 2.0])
    with pytest.raises(TercetError, match="prediction of row 1"):
        classification_metrics([0, 1], [[0.5, 0.5], [bad, 0.0]])


def test_unequal_rows_are_named() -> None:
    with pytest.raises(TercetError, match="2 labels and 1 predictions"):
        grade_metrics([1.0, 2.0], [1.0])


def test_overall_is_the_mean_both_ways() -> None:
    scores = {"sentiment": 0.5, "paraphrase": 0.8, "similarity": 0.6}
    figures = overall(scores, shifted={"similarity"})
    assert figures["mean"] == pytest.approx(1.9 / 3)
    assert figures["mean-shifted"] == pytest.approx(2.1 / 3)


@pytest.mark.parametrize("scores", [{}, {"sentiment": 0.5, "similarity": None}])
def test_overall_is_undefined_where_a_score_is(scores: dict[str, float | None]) -> None:
    assert overall(scores, shifted={"similarity"}) == {"mean": None, "mean-shifted": None}


def test_metrics_need_no_torch() -> None:
    code = (
        "import sys; from tercet.evaluation import bootstrap, metrics; "
        "assert not {'torch', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
