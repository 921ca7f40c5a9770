from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from tercet.evaluate.details import (
    by_length,
    confusion,
    mistakes,
    precision_recall,
    shares,
    word_counts,
)


@st.composite
def classes(draw):
    """Number of classes, labels and predicted classes."""
    count = draw(st.integers(1, 6))
    numbers = st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), min_size=1, max_size=80)
    labels, predicted = zip(*draw(numbers), strict=True)
    return count, np.array(labels), np.array(predicted)


@st.composite
def binary(draw):
    """Labels 0 and 1 and probabilities with many ties."""
    rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=60)
    labels, eighths = zip(*draw(rows), strict=True)
    return np.array(labels), np.array(eighths) / 8.0


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(classes())
def test_confusion_is_that_of_scikit_learn(drawn) -> None:
    count, labels, predicted = drawn
    names = np.arange(count)
    expected = metrics.confusion_matrix(labels, predicted, labels=names)
    found = confusion(labels, predicted, classes=count)
    np.testing.assert_array_equal(found, expected)
    normalised = metrics.confusion_matrix(labels, predicted, labels=names, normalize="true")
    for ours, theirs, row in zip(shares(found), normalised, expected, strict=True):
        if row.sum():
            np.testing.assert_allclose(np.array(ours, float), theirs)
        else:
            assert ours == [None] * count


@given(binary())
def test_precision_and_recall_are_those_of_scikit_learn(drawn) -> None:
    labels, probabilities = drawn
    curve = precision_recall(labels, probabilities)
    if not labels.any():
        assert curve is None
        return
    expected = metrics.precision_recall_curve(labels, probabilities)
    np.testing.assert_allclose(curve.precision, expected[0])
    np.testing.assert_allclose(curve.recall, expected[1])
    np.testing.assert_allclose(curve.thresholds, expected[2])
    average = metrics.average_precision_score(labels, probabilities)
    assert curve.average == pytest.approx(average, abs=1e-12)


def test_mistakes_come_most_confident_first() -> None:
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.05, 0.95]])
    worst = mistakes([1, 1, 0, 0], probabilities, graded=False, top=2)
    assert [(one.row, one.expected, one.predicted) for one in worst] == [(3, 0, 1), (0, 1, 0)]
    assert [one.weight for one in worst] == pytest.approx([0.95, 0.9])
    assert [one.row for one in mistakes([1, 0], [0.1, 0.6], graded=False, top=9)] == [0, 1]


def test_mistakes_of_grades_are_the_furthest_off() -> None:
    worst = mistakes([0.0, 3.0, 5.0], [1.0, 3.0, 2.0], graded=True, top=9)
    assert [(one.row, one.weight) for one in worst] == [(2, 3.0), (0, 1.0)]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=120))
def test_lengths_are_binned_without_gaps_or_overlap(lengths: list[int]) -> None:
    labels = np.arange(len(lengths)) % 2
    bins = by_length("accuracy", labels, labels.astype(float), lengths)
    assert sum(one.rows for one in bins) == len(lengths)
    assert all(one.value == 1.0 for one in bins)
    assert all(a.longest < b.shortest for a, b in pairwise(bins))


def test_a_bin_without_a_figure_says_so() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bins = by_length("pearson", [1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [5, 5, 5])
    assert [(one.rows, one.value, one.interval) for one in bins] == [(3, None, None)]
    assert by_length("accuracy", [], [], []) == []


def test_words_of_pairs_count_together() -> None:
    assert word_counts((["one two", ""], ["three", "a b  c"])).tolist() == [3, 3]
