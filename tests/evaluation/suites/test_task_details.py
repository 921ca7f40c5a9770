from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import metrics

from tercet.evaluation.suites.tasks.charts import task_charts
from tercet.evaluation.suites.tasks.details import by_length, confusion, mistake_rows, word_counts


@st.composite
def binary(draw):
    """Labels 0 and 1 and probabilities with many ties."""
    rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8)), min_size=1, max_size=60)
    labels, eighths = zip(*draw(rows), strict=True)
    return np.array(labels), np.array(eighths) / 8.0


def two_classes(answers, labels, positive, **fields):
    positive = np.asarray(positive, float)
    both = np.stack([1 - positive, positive], axis=1)
    return answers("task", "bi", labels, both, classes=["no", "yes"], **fields)


def test_confusion_counts_classes_that_never_occur(answers) -> None:
    likely = np.eye(3)[[0, 1, 1]]
    counts = confusion(answers("task", "single", [0, 1, 0], likely, classes=["a", "b", "c"]))
    assert counts.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]
    nothing = answers("task", "single", [], [], classes=["a", "b"], metrics={})
    assert confusion(nothing).tolist() == [[0, 0], [0, 0]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=binary())
def test_the_curve_is_that_of_scikit_learn(answers, drawn) -> None:
    labels, probabilities = drawn
    chart = task_charts([two_classes(answers, labels, probabilities, metrics={})])[0]
    if not labels.any():
        assert chart.series == []
        assert "undefined" in chart.alternative
        return
    precision, recall, _ = metrics.precision_recall_curve(labels, probabilities)
    assert np.array(chart.series[0].points) == pytest.approx(np.stack([recall, precision], axis=1))
    average = metrics.average_precision_score(labels, probabilities)
    assert chart.series[0].name == f"bi, average precision {average:.3f}"


def test_mistakes_come_most_confident_first(answers) -> None:
    texts = (["first", "second", "third", "fourth"],)
    sure = two_classes(answers, [1, 1, 0, 0], [0.1, 0.8, 0.6, 0.95], texts=texts)
    rows = [[cell.text for cell in row] for row in mistake_rows(sure)]
    assert rows == [
        ["fourth", "task", "no", "yes", "95% confident"],
        ["first", "task", "yes", "no", "90% confident"],
        ["third", "task", "no", "yes", "60% confident"],
    ]
    assert [row[-1].sort for row in mistake_rows(sure)] == pytest.approx([0.95, 0.9, 0.6])


def test_mistakes_of_grades_are_the_furthest_off(answers) -> None:
    texts = (["first", "second", "third"],)
    graded = answers("task", "bi", [0.0, 3.0, 5.0], [1.0, 3.0, 2.0], texts=texts)
    rows = [[cell.text for cell in row] for row in mistake_rows(graded)]
    assert rows == [
        ["third", "task", "5.0", "2.0", "off by 3.0"],
        ["first", "task", "0.0", "1.0", "off by 1.0"],
    ]


@settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=120))
def test_lengths_are_binned_without_gaps_or_overlap(answers, lengths: list[int]) -> None:
    labels = np.arange(len(lengths)) % 2
    texts = (["word " * length for length in lengths],)
    bins = by_length(two_classes(answers, labels, labels, texts=texts, metrics={}))
    assert sum(part.rows for part in bins) == len(lengths)
    assert all(part.value == 1.0 for part in bins)
    assert all(a.longest < b.shortest for a, b in pairwise(bins))


def test_a_bin_without_a_metric_is_undefined(answers) -> None:
    texts = (["a b c d e"] * 3,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bins = by_length(answers("task", "bi", [1.0, 2.0, 3.0], [2.0] * 3, texts=texts, metrics={}))
    assert [(part.rows, part.value, part.interval) for part in bins] == [(3, None, None)]
    assert by_length(answers("task", "bi", [], [], texts=([],), metrics={})) == []


def test_words_of_pairs_count_together() -> None:
    assert word_counts((["one two", ""], ["three", "a b  c"])).tolist() == [3, 3]
