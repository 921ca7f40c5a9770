"""What is wrong with a model, one sentence each, from its predictions for rows with labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import shorten
from tercet.evaluation.answers import Answers
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.per_class import class_scores

CONSTANT = 0.01
"""Grades that differ by less than this share of their range count as constant."""
CUT = 0.2
"""The share of predictions at an end of the range, beyond that of the labels, that is too large."""
CALIBRATION_ERROR = 0.1
CALIBRATION_ROWS = 100
"""With fewer rows the calibration error of a calibrated model may also be above the limit."""
NAMED = 5
"""Classes that are never predicted, in a sentence."""


def warnings_of(answers: Answers, *, majority: float | None, linear: float | None) -> list[str]:
    """Sentences that name the task, the numbers and what to try; empty if nothing is wrong.

    majority, linear: the scores of simple baselines in the task's main metric, where measured: the
        most frequent class, and a linear model on the untouched encoder
    """
    if not len(answers.labels):
        return []
    is_constant = _is_constant(answers)
    found = [_constant(answers)] if is_constant else [*_never_predicted(answers), *_cut(answers)]
    found += _below(answers, majority=majority, linear=linear)
    if not is_constant:
        found += [*_doubtful(answers, majority=majority), *_calibration(answers)]
    return [f"{answers.task}: {sentence}" for sentence in found]


def _is_constant(answers: Answers) -> bool:
    if answers.classes is not None:
        return _all_equal(answers.predicted) and not _all_equal(answers.labels)
    low, high = answers.span
    return bool(
        np.ptp(answers.labels) > 0.0 and np.ptp(answers.predictions) <= CONSTANT * (high - low)
    )


def _all_equal(rows: NDArray[Any]) -> bool:
    return bool((rows == rows[0]).all())


def _constant(answers: Answers) -> str:
    rows = len(answers.labels)
    if answers.classes is not None:
        name = answers.name(answers.predicted[0])
        return (
            f"all {rows:,} rows are predicted to be {name}; add rows of the other classes, train "
            f"longer, or edit the recipe: `{_weights(answers)}` if one class is much more "
            "frequent, or a lower learning rate."
        )
    low, high = answers.span
    return (
        f"all {rows:,} predicted grades are about {np.median(answers.predictions):.2f}, while the "
        f"labels range from {answers.labels.min():g} to {answers.labels.max():g}; check that "
        f"`targets` of the objective fit the head and that `range` is [{low:g}, {high:g}]."
    )


def _never_predicted(answers: Answers) -> Iterator[str]:
    if answers.classes is None:
        return
    absent = [each for each in class_scores(answers) if each.support and not each.predicted]
    if not absent:
        return
    absent.sort(key=lambda each: -each.support)
    named = [
        f"{shorten(each.name)} ({each.support:,} row{'s' if each.support > 1 else ''})"
        for each in absent[:NAMED]
    ]
    more = f" and {len(absent) - NAMED:,} more classes" if len(absent) > NAMED else ""
    yield (
        f"never predicts {', '.join(named)}{more}; add rows of "
        f"{'these classes' if len(absent) > 1 else 'this class'}, or set "
        f"`{_weights(answers)}` in the recipe."
    )


def _weights(answers: Answers) -> str:
    """The key of a recipe that makes rare classes count as much as others."""
    return f'tasks.{answers.task}.class_weights = "balanced"'


def _cut(answers: Answers) -> Iterator[str]:
    """Many grades at an end of the range, where few labels are."""
    if answers.classes is not None or answers.range is None:
        return
    for bound, end in zip(answers.range, ("lowest", "highest"), strict=True):
        near = CONSTANT * (answers.range[1] - answers.range[0]) / 2.0
        predicted = float((np.abs(answers.predictions - bound) <= near).mean())
        expected = float((np.abs(answers.labels - bound) <= near).mean())
        if predicted - expected >= CUT:
            yield (
                f"{predicted:.0%} of the predicted grades are cut at {bound:g}, the {end} grade, "
                f"which only {expected:.0%} of the labels have; check `range` and the objective's "
                "`targets`, or train longer."
            )


def _below(answers: Answers, *, majority: float | None, linear: float | None) -> Iterator[str]:
    score = answers.metrics.get(answers.metric, Estimate(None))
    if score.value is None:
        return
    baselines = {"always predicting the majority class": majority}
    baselines["a linear model on the untouched encoder"] = linear
    better = {
        name: value
        for name, value in baselines.items()
        if value is not None and score.value < value
    }
    if not better:
        return
    named = " and ".join(f"{name} ({value:.3f})" for name, value in better.items())
    yield (
        f"{answers.metric} {_with_interval(score)} is below {named}; add rows, train "
        "longer, or edit the recipe: a lower learning rate."
    )


def _doubtful(answers: Answers, *, majority: float | None) -> Iterator[str]:
    """A score that may be that of the majority class, as the scores of labels that do not depend on
    the texts are."""
    score = answers.metrics.get(answers.metric, Estimate(None))
    if score.value is None or score.interval is None or majority is None:
        return
    if score.interval[0] <= majority <= score.value:
        yield (
            f"{answers.metric} {_with_interval(score)} is not clearly above always predicting the "
            f"majority class ({majority:.3f}); check that the labels depend on the texts, or add "
            "rows."
        )


def _with_interval(score: Estimate) -> str:
    if score.interval is None:
        return f"{score.value:.3f}"
    low, high = score.interval
    return f"{score.value:.3f} (95 % interval {low:.3f} to {high:.3f})"


def _calibration(answers: Answers) -> Iterator[str]:
    result = answers.calibration
    rows = 0 if result is None else sum(part.rows for part in result.bins)
    if result is None or result.ece is None or rows < CALIBRATION_ROWS:
        return
    if result.ece > CALIBRATION_ERROR:
        confidence = sum(part.rows * (part.confidence or 0.0) for part in result.bins) / rows
        accuracy = sum(part.rows * (part.accuracy or 0.0) for part in result.bins) / rows
        yield (
            f"probabilities are off by {result.ece:.2f} on average: mean confidence is "
            f"{confidence:.0%}, accuracy {accuracy:.0%}; add rows, or calibrate the model on "
            "rows that it was not trained on (`held_out` in the recipe)."
        )
