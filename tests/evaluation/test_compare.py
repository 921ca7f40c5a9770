from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tercet.errors import TercetError
from tercet.evaluation.compare import compare, difference, names_of

METRICS = ["accuracy", "macro-f1", "f1", "pearson", "spearman"]


@pytest.mark.parametrize("metric", METRICS)
def test_a_model_does_not_differ_from_itself(metric: str) -> None:
    draw = np.random.default_rng(3)
    labels, predicted = draw.integers(0, 2, 80).astype(float), draw.uniform(size=80)
    result = difference(metric, labels, predicted, predicted)
    assert (result.value, result.interval, result.p) == (0.0, (0.0, 0.0), 1.0)


@pytest.mark.parametrize("metric", METRICS)
def test_a_clearly_better_model_is_result(metric: str) -> None:
    draw = np.random.default_rng(4)
    labels = draw.integers(0, 2, 200).astype(float)
    guess = draw.uniform(size=200)
    good = np.clip(labels * 0.8 + 0.2 * draw.uniform(size=200), 0.0, 1.0)
    better, worse = (difference(metric, labels, *pair) for pair in ((guess, good), (good, guess)))
    assert better.value > 0.2
    assert better.interval[0] > 0.1
    assert better.p < 0.01
    assert worse.value == pytest.approx(-better.value)
    assert worse.p == better.p


def test_chance_is_called_chance() -> None:
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, 150).astype(float)
    small = [
        difference("accuracy", labels, *draw.uniform(size=(2, 150))).p < 0.05 for _ in range(100)
    ]
    assert np.mean(small) < 0.15


@pytest.mark.parametrize("metric", ["accuracy", "pearson"])
def test_pairing_agrees_with_resampling_row_by_row(metric: str) -> None:
    draw = np.random.default_rng(6)
    labels = draw.integers(0, 2, 200).astype(float)
    first = draw.uniform(size=200)
    second = np.clip(first + draw.normal(scale=0.1, size=200), 0.0, 1.0)
    result = difference(metric, labels, first, second)
    by_hand = []
    for _ in range(2000):
        rows = draw.integers(200, size=200)
        pair = [
            np.mean((predicted[rows] > 0.5) == labels[rows])
            if metric == "accuracy"
            else np.corrcoef(labels[rows], predicted[rows])[0, 1]
            for predicted in (first, second)
        ]
        by_hand.append(pair[1] - pair[0])
    # Were the rows not the same for both, the interval would be several times as wide.
    expected = np.percentile(by_hand, [2.5, 97.5])
    assert result.interval == pytest.approx(expected, abs=0.2 * np.ptp(expected))


def test_undefined_is_predicted() -> None:
    result = difference("pearson", np.array([1.0, 2.0]), np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    assert (result.value, result.interval, result.p) == (None, None, None)


def without(evaluation, task: str):
    tasks = evaluation.suites["tasks"]
    kept_tasks = {name: result for name, result in tasks.tasks.items() if name != task}
    suites = {"tasks": dataclasses.replace(tasks, tasks=kept_tasks)}
    return dataclasses.replace(evaluation, suites=suites)


def test_models_side_by_side(evaluation, texts) -> None:
    good, bad = evaluation("good", skill=1.5), evaluation("bad", skill=0.0, seed=9)
    result = compare([bad, good, bad])
    assert result.names == ["bad (1)", "good", "bad (3)"]
    for metric in result.metrics:
        better, same = metric.differences
        assert better.p < 0.05
        assert better.value == pytest.approx(metric.values[1] - metric.values[0])
        assert (same.value, same.p) == (0.0, 1.0)
    assert {each.task for each in result.disagreements} == {
        "sentiment",
        "paraphrase",
        "similarity",
    }
    for each in result.disagreements:
        assert len(set(each.predicted)) > 1
        assert each.predicted[0] == each.predicted[2]
        assert each.inputs[0] in texts[each.task][0]
        if each.task != "similarity":
            assert each.right == [predicted == each.expected for predicted in each.predicted]
    sentiment = [each.distance for each in result.disagreements if each.task == "sentiment"]
    assert sentiment == sorted(sentiment, reverse=True)


def test_the_document_keeps_its_keys(evaluation) -> None:
    document = compare([evaluation("a"), evaluation("b", skill=0.0)]).to_json()
    assert list(document) == ["names", "contests", "disagreements"]
    assert list(document["contests"][0]) == [
        "task", "metric", "chosen", "rows", "values", "intervals", "modes", "differences",
    ]  # fmt: skip
    assert list(document["disagreements"][0]) == [
        "task", "inputs", "expected", "said", "right", "apart",
    ]  # fmt: skip


def test_a_task_that_one_model_lacks_is_left_open(evaluation) -> None:
    result = compare([without(evaluation("part"), "similarity"), evaluation("whole")])
    (pearson,) = [metric for metric in result.metrics if metric.metric == "pearson"]
    assert pearson.values[0] is None
    assert pearson.differences == [None]
    assert {each.task for each in result.disagreements} <= {"sentiment", "paraphrase"}


def test_different_rows_are_refused(evaluation) -> None:
    other = evaluation("b")
    other.suites["tasks"].tasks["sentiment"].best.labels[:2] = [2, 0]
    with pytest.raises(TercetError, match=r"task `sentiment`: .* different rows"):
        compare([evaluation("a"), other])
    with pytest.raises(TercetError, match="two models"):
        compare([other])


def test_names_are_distinct(evaluation) -> None:
    assert names_of([evaluation("a"), evaluation("b")]) == ["a", "b"]


def test_metrics_of_suites_are_compared(evaluation, suites) -> None:
    first, second = evaluation("one", suites=suites()), evaluation("two")
    rows = {each.metric: each.values for each in compare([first, second]).suite_metrics}
    value, absent = rows["STS-B, spearman"]
    assert (value.value, absent) == (0.5, None)
    # STS-B lost a pair, STS12 none.
    assert "STS-B without leaked pairs, spearman" in rows
    assert "STS12 without leaked pairs, spearman" not in rows
