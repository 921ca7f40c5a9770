from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from tercet.evaluation.per_class import class_scores, majority_accuracy


def defined(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]


def check(answers, truth, predicted) -> None:
    scores = class_scores(answers)
    expected = precision_recall_fscore_support(
        truth, predicted, labels=range(len(scores)), zero_division=np.nan
    )
    for metric, values in zip(("precision", "recall", "f1"), expected[:3], strict=True):
        found = defined([getattr(each, metric) for each in scores])
        assert found == pytest.approx(values.tolist(), nan_ok=True)
    assert [each.support for each in scores] == expected[3].tolist()


def test_scores_are_those_of_scikit_learn(answers) -> None:
    drawn = np.random.default_rng(1)
    # Class 3 never occurs, class 4 is never predicted, class 5 neither.
    labels, predicted = drawn.choice([0, 1, 2, 4], 200), drawn.choice([0, 1, 2, 3], 200)
    likely = np.eye(6)[predicted] * 0.5 + 0.1
    given = answers("team", "single", labels, likely, classes=list("abcdef"))
    check(given, labels, predicted)
    assert class_scores(given)[5].f1 is None


def test_scores_of_several_labels_are_those_of_scikit_learn(answers) -> None:
    drawn = np.random.default_rng(2)
    labels, likely = drawn.integers(0, 2, (90, 3)), drawn.uniform(size=(90, 3))
    given = answers("tags", "single", [], [], classes=list("abc"), metrics={})
    thresholds = [0.2, 0.5, 0.9]
    several = dataclasses.replace(given, labels=labels, predictions=likely, thresholds=thresholds)
    check(several, labels, likely >= thresholds)


def test_the_majority_is_the_largest_class(answers) -> None:
    given = answers("team", "single", [0, 1, 1, 1], np.eye(2)[[0, 0, 0, 0]], classes=["a", "b"])
    assert majority_accuracy(given) == 0.75
    assert majority_accuracy(dataclasses.replace(given, metric="macro-f1")) is None
