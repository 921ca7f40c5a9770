"""Models side by side: what differs beyond chance, and on which sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.evaluate.answers import Answers, Document, Texts, answers_of, tasks_of
from tercet.evaluate.bootstrap import PERCENTILES, paired_differences
from tercet.evaluate.details import measure

SEED = 11711
DIFFERING = 40
"""Sentences a task."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """How much a model's figure exceeds the first model's, by a paired bootstrap.

    p: how likely chance alone makes it so large, either way; None where a figure is undefined
    """

    value: float | None
    interval: tuple[float, float] | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Contest:
    """One metric of one task, of all models that have it.

    values, modes: by model; None where a model lacks the task
    differences: by model after the first; None where it or the first lacks the task
    """

    task: str
    metric: str
    chosen: bool
    rows: int
    values: list[float | None]
    intervals: list[tuple[float, float] | None]
    modes: list[str | None]
    differences: list[Difference | None]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row of which models say different things; what each says, and how far they are apart."""

    task: str
    inputs: list[str]
    expected: str
    said: list[str]
    right: list[bool]
    apart: float


@dataclass(frozen=True, slots=True)
class Comparison:
    names: list[str]
    contests: list[Contest]
    disagreements: list[Disagreement]


def compare(documents: Sequence[Document], texts: Sequence[Texts]) -> Comparison:
    """Set evaluations of the same data side by side, the first against each of the others.

    Of each task every model's most exact mode counts.
    """
    if len(documents) < 2:
        raise TercetError("A comparison needs two models or more.")
    found = [_exact_answers(*each) for each in zip(documents, texts, strict=True)]
    tasks = list(dict.fromkeys(task for answers in found for task in answers))
    contests, disagreements = [], []
    for task in tasks:
        having = [answers.get(task) for answers in found]
        _check_same_rows(task, having)
        contests += _contests(task, documents, having)
        disagreements += _disagreements(having)
    return Comparison(names_of(documents), contests, disagreements)


def names_of(documents: Sequence[Document]) -> list[str]:
    """What each model is called; a number is added where two are called the same."""
    names = [str(document["model"]["name"]) for document in documents]
    return [
        name if names.count(name) == 1 else f"{name} ({number})"
        for number, name in enumerate(names, 1)
    ]


def _exact_answers(document: Document, texts: Texts) -> dict[str, Answers]:
    every = {task: answers_of(document, texts, task) for task in tasks_of(document)}
    return {task: answers[0] for task, answers in every.items() if answers}


def _check_same_rows(task: str, answers: Sequence[Answers | None]) -> None:
    there = [one for one in answers if one is not None]
    if any(not np.array_equal(one.labels, there[0].labels) for one in there):
        raise TercetError(
            f"task `{task}`: the models were measured on different rows; measure them on the same "
            "data."
        )


def _contests(
    task: str, documents: Sequence[Document], answers: Sequence[Answers | None]
) -> list[Contest]:
    figures = [
        None if one is None else tasks_of(document)[task]["modes"][one.mode]["metrics"]
        for document, one in zip(documents, answers, strict=True)
    ]
    metrics = dict.fromkeys(metric for found in figures if found for metric in found)
    there = next(one for one in answers if one is not None)
    return [
        Contest(
            task=task,
            metric=metric,
            chosen=metric == there.metric,
            rows=len(there.labels),
            values=[_value(found, metric) for found in figures],
            intervals=[_interval(found, metric) for found in figures],
            modes=[None if one is None else one.mode for one in answers],
            differences=[_difference(metric, answers[0], other) for other in answers[1:]],
        )
        for metric in metrics
    ]


def _value(figures: Any, metric: str) -> float | None:
    return figures.get(metric, {}).get("value") if figures else None


def _interval(figures: Any, metric: str) -> tuple[float, float] | None:
    bounds = figures.get(metric, {}).get("interval") if figures else None
    return None if bounds is None else (bounds[0], bounds[1])


def _difference(metric: str, first: Answers | None, other: Answers | None) -> Difference | None:
    if first is None or other is None:
        return None
    return difference(metric, first.labels, first.measured, other.measured)


def difference(metric: str, labels: Floats, first: Floats, second: Floats) -> Difference:
    """The second predictions against the first, as `interval` takes them."""
    figures = measure(metric, labels, first), measure(metric, labels, second)
    drawn = paired_differences(metric, labels, first, second, SEED)
    if figures[0] is None or figures[1] is None or not len(drawn):
        return Difference(None, None, None)
    low, high = np.percentile(drawn, PERCENTILES)
    # One is added to both sides, as a bootstrap never shows that something cannot happen.
    tail = min(int((drawn <= 0.0).sum()), int((drawn >= 0.0).sum()))
    p = min(1.0, 2.0 * (tail + 1) / (len(drawn) + 1))
    return Difference(figures[1] - figures[0], (float(low), float(high)), p)


def _disagreements(answers: Sequence[Answers | None]) -> list[Disagreement]:
    """The rows of which two models or more say different things, the furthest apart first."""
    there = [one for one in answers if one is not None]
    if len(there) < 2 or not there[0].texts:
        return []
    said = np.stack([one.said for one in there])
    apart = np.ptp(np.stack([one.of_truth for one in there]), axis=0)
    differ = np.flatnonzero(np.ptp(said, axis=0) > 0.0)
    rows = differ[np.argsort(-apart[differ], kind="stable")][:DIFFERING]
    return [_disagreement(answers, int(row), float(apart[row])) for row in rows]


def _disagreement(answers: Sequence[Answers | None], row: int, apart: float) -> Disagreement:
    first = next(one for one in answers if one is not None)
    errors = [None if one is None else abs(one.said[row] - one.labels[row]) for one in answers]
    least = min(error for error in errors if error is not None)
    return Disagreement(
        task=first.task,
        inputs=first.inputs(row),
        expected=first.name(first.labels[row]),
        said=["" if one is None else one.name(one.said[row]) for one in answers],
        right=[
            error is not None and bool(error == (least if first.classes is None else 0.0))
            for error in errors
        ],
        apart=apart,
    )
