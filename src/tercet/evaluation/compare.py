"""Models side by side: what differs beyond chance, and on which sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tercet.errors import TercetError
from tercet.evaluation.answers import Answers
from tercet.evaluation.bootstrap import PERCENTILES, paired_differences
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.metrics import Bounds, Estimate, measure

SEED = 11711
DIFFERING = 40
"""Sentences per task."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The metric of a model minus that of the first model, by a paired bootstrap.

    p: two-sided p-value; None where a metric is undefined
    """

    value: float | None
    interval: Bounds | None
    p: float | None


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of one task, of all models that have it.

    chosen: whether it is the task's main metric
    values, intervals, modes: by model; None where a model lacks the task
    differences: by model after the first; None where it or the first lacks the task
    """

    task: str
    metric: str
    chosen: bool
    rows: int
    values: list[float | None]
    intervals: list[Bounds | None]
    modes: list[str | None]
    differences: list[Difference | None]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row that models predict differently.

    predicted, right: by model
    distance: between the models' probabilities of the right class, or between their grades
    """

    task: str
    inputs: list[str]
    expected: str
    predicted: list[str]
    right: list[bool]
    distance: float

    def to_json(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "inputs": self.inputs,
            "expected": self.expected,
            "said": self.predicted,
            "right": self.right,
            "apart": self.distance,
        }


@dataclass(frozen=True, slots=True)
class SuiteMetric:
    """A metric of a suite; values by model, None where a model lacks it."""

    suite: str
    metric: str
    values: list[Estimate | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    names: list[str]
    metrics: list[MetricComparison]
    disagreements: list[Disagreement]
    suite_metrics: list[SuiteMetric]

    def to_json(self) -> dict[str, Any]:
        return {
            "names": self.names,
            "contests": [asdict(metric) for metric in self.metrics],
            "disagreements": [each.to_json() for each in self.disagreements],
        }


def compare(evaluations: Sequence[Evaluation]) -> Comparison:
    """Compare the first of several evaluations of the same data with each of the others."""
    if len(evaluations) < 2:
        raise TercetError("A comparison needs two models or more.")
    by_model = [
        {answers.task: answers for result in each.suites.values() for answers in result.answers()}
        for each in evaluations
    ]
    metrics, disagreements = [], []
    for task in dict.fromkeys(task for answers in by_model for task in answers):
        answers = [model.get(task) for model in by_model]
        _check_same_rows(task, answers)
        metrics += _compare_metrics(task, answers)
        disagreements += _disagreements(answers)
    return Comparison(names_of(evaluations), metrics, disagreements, _suite_metrics(evaluations))


def names_of(evaluations: Sequence[Evaluation]) -> list[str]:
    """The models' names; a number is added where two are equal."""
    names = [each.name for each in evaluations]
    return [
        name if names.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(names, 1)
    ]


def _check_same_rows(task: str, answers: Sequence[Answers | None]) -> None:
    labels = [each.labels for each in answers if each is not None]
    if any(not np.array_equal(each, labels[0]) for each in labels):
        raise TercetError(
            f"task `{task}`: the models were measured on different rows; measure them on the same "
            "data."
        )


def _compare_metrics(task: str, answers: Sequence[Answers | None]) -> list[MetricComparison]:
    known = [each for each in answers if each is not None]
    none = Estimate(None)
    comparisons = []
    for metric in dict.fromkeys(metric for each in known for metric in each.metrics):
        values = [none if each is None else each.metrics.get(metric, none) for each in answers]
        comparisons.append(
            MetricComparison(
                task=task,
                metric=metric,
                chosen=metric == known[0].metric,
                rows=len(known[0].labels),
                values=[each.value for each in values],
                intervals=[each.interval for each in values],
                modes=[None if each is None else each.mode for each in answers],
                differences=[_difference(metric, answers[0], other) for other in answers[1:]],
            )
        )
    return comparisons


def _difference(metric: str, first: Answers | None, other: Answers | None) -> Difference | None:
    if first is None or other is None:
        return None
    return difference(metric, first.labels, first.measured, other.measured)


def difference(metric: str, labels: ArrayLike, first: ArrayLike, second: ArrayLike) -> Difference:
    """The second predictions against the first, as `interval` takes them."""
    values = measure(metric, labels, first), measure(metric, labels, second)
    resampled = paired_differences(metric, labels, first, second, SEED)
    if values[0] is None or values[1] is None or not len(resampled):
        return Difference(None, None, None)
    low, high = np.percentile(resampled, PERCENTILES)
    # One is added to both counts: a bootstrap cannot show that something is impossible.
    tail = min(int((resampled <= 0.0).sum()), int((resampled >= 0.0).sum()))
    p = min(1.0, 2.0 * (tail + 1) / (len(resampled) + 1))
    return Difference(values[1] - values[0], (float(low), float(high)), p)


def _disagreements(answers: Sequence[Answers | None]) -> list[Disagreement]:
    """The rows that two models or more predict differently, the furthest apart first."""
    known = [each for each in answers if each is not None]
    if len(known) < 2 or not known[0].texts:
        return []
    predicted = np.stack([each.predicted for each in known])
    distances = np.ptp(np.stack([each.of_label for each in known]), axis=0)
    differ = np.flatnonzero(np.ptp(predicted, axis=0) > 0.0)
    rows = differ[np.argsort(-distances[differ], kind="stable")][:DIFFERING]
    return [_disagreement(answers, int(row), float(distances[row])) for row in rows]


def _disagreement(answers: Sequence[Answers | None], row: int, distance: float) -> Disagreement:
    first = next(each for each in answers if each is not None)
    errors = [
        None if each is None else abs(each.predicted[row] - each.labels[row]) for each in answers
    ]
    least = min(error for error in errors if error is not None)
    return Disagreement(
        task=first.task,
        inputs=first.inputs(row),
        expected=first.name(first.labels[row]),
        predicted=["" if each is None else each.name(each.predicted[row]) for each in answers],
        right=[
            error is not None and bool(error == (least if first.classes is None else 0.0))
            for error in errors
        ],
        distance=distance,
    )


def _suite_metrics(evaluations: Sequence[Evaluation]) -> list[SuiteMetric]:
    by_model = [
        {
            (suite, metric): value
            for suite, result in each.suites.items()
            for metric, value in result.metrics().items()
        }
        for each in evaluations
    ]
    keys = dict.fromkeys(key for metrics in by_model for key in metrics)
    return [
        SuiteMetric(suite, metric, [metrics.get((suite, metric)) for metrics in by_model])
        for suite, metric in keys
    ]
