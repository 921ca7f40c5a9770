"""The charts of a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tercet.evaluation.answers import Answers
from tercet.evaluation.calibration import Calibration
from tercet.evaluation.presentation import Axis, Chart, Point, Series, decimal, padded, spread
from tercet.evaluation.suites.tasks.details import LengthBin, by_length

DOTS = 2_000
"""Points on a scatter."""
CURVE = 200
"""Points on a curve."""


def task_charts(modes: Sequence[Answers]) -> list[Chart]:
    """Scatters of grades; precision-recall and reliability of classes; the metric by length."""
    calibrated = [(it.mode, it.calibration) for it in modes if it.calibration is not None]
    charts = [_scatter(answers) for answers in modes if answers.classes is None]
    charts += [_precision_recall(modes)] if modes[0].positive is not None else []
    charts += [_reliability(modes[0].task, calibrated)] if calibrated else []
    charts += [_by_length(modes)] if modes[0].texts and len(modes[0].labels) else []
    return charts


def _scatter(answers: Answers) -> Chart:
    """Predicted over expected grades."""
    rows = spread(len(answers.labels), DOTS)
    expected, predicted = answers.labels[rows].tolist(), answers.predictions[rows].tolist()
    low, high = padded([*answers.labels.tolist(), *answers.predictions.tolist()])
    drawn = "" if len(rows) == len(answers.labels) else f" {len(rows):,} of them are drawn."
    off = float(np.abs(answers.predictions - answers.labels).mean()) if len(rows) else None
    return Chart(
        title=f"Predicted over expected grades, mode {answers.mode}",
        note="Above the dotted line they are too high, below it too low.",
        alternative=(
            f"Scatter of {len(answers.labels):,} predicted grades of {answers.task} over the "
            f"expected ones, mode {answers.mode}; on average they are off by {decimal(off, 2)}."
            f"{drawn}"
        ),
        x=Axis("expected", low, high),
        y=Axis("predicted", low, high),
        series=[Series(answers.mode, list(zip(expected, predicted, strict=True)), kind="cloud")],
        diagonal=True,
    )


def _precision_recall(modes: Sequence[Answers]) -> Chart:
    """The curve of each mode of a task with two classes."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    series, sentences = [], []
    for answers in modes:
        if not answers.labels.any():
            sentences.append(f"{answers.mode}: undefined, as no row is of class 1")
            continue
        precision, recall, _ = precision_recall_curve(answers.labels, answers.positive)
        average = (
            f"average precision {average_precision_score(answers.labels, answers.positive):.3f}"
        )
        rows = spread(len(recall), CURVE)
        points = list(zip(recall[rows].tolist(), precision[rows].tolist(), strict=True))
        series.append(Series(f"{answers.mode}, {average}", points))
        half = float(precision[recall >= 0.5].max())
        sentences.append(f"{answers.mode}: {average}, precision {half:.3f} at recall 0.5")
    return Chart(
        title="Precision over recall",
        alternative=f"Precision-recall curve of {modes[0].task}. {'. '.join(sentences)}.",
        x=Axis("recall", 0.0, 1.0),
        y=Axis("precision", 0.0, 1.0),
        series=series,
    )


def _reliability(task: str, modes: Sequence[tuple[str, Calibration]]) -> Chart:
    """Accuracy over confidence."""
    series, sentences = [], []
    for mode, calibration in modes:
        bins = [part for part in calibration.bins if part.rows]
        rows = sum(part.rows for part in bins)
        error = decimal(calibration.ece)
        series.append(
            Series(
                f"{mode}, calibration error {error}",
                [(part.confidence or 0.0, part.accuracy or 0.0) for part in bins],
                kind="marked",
                weights=[part.rows / rows for part in bins],
            )
        )
        sentences.append(f"{mode}: expected calibration error {error}")
    return Chart(
        title="Reliability",
        note="Below the dotted line it is overconfident. Larger dots: more rows.",
        alternative=(
            f"Reliability of {task}: accuracy over confidence, in bins; on the dotted line "
            f"confidence equals accuracy. {'. '.join(sentences)}."
        ),
        x=Axis("confidence", 0.0, 1.0),
        y=Axis("accuracy", 0.0, 1.0),
        series=series,
        diagonal=True,
    )


def _by_length(modes: Sequence[Answers]) -> Chart:
    """The task's metric over the number of words."""
    task, metric = modes[0].task, modes[0].metric
    every = [by_length(answers) for answers in modes]
    series = [
        # Side by side, so that intervals do not hide one another.
        _length_series(answers.mode, bins, shift=(place - (len(every) - 1) / 2.0) * 0.14)
        for place, (answers, bins) in enumerate(zip(modes, every, strict=True))
    ]
    ends = [(part.shortest, part.longest) for part in every[0]]
    names = [str(low) if low == high else f"{low}–{high}" for low, high in ends]
    bounds = [value for each in series for pair in each.whiskers if pair for value in pair]
    low, high = padded([*(y for each in series for _, y in each.points), *bounds], least=0.2)
    sentences = [
        f"{answers.mode}: "
        + ", ".join(
            f"{name} words {decimal(part.value)}" for name, part in zip(names, bins, strict=True)
        )
        for answers, bins in zip(modes, every, strict=True)
    ]
    words = "words" if len(modes[0].texts) == 1 else "words of both sentences"
    return Chart(
        title=f"{metric.capitalize()} by length",
        note="With 95 % intervals, in groups of about equal size.",
        alternative=f"{metric} of {task} by number of words. {'. '.join(sentences)}.",
        x=Axis(words, -0.4, len(names) - 0.6, names),
        y=Axis(metric, max(low, -1.0), min(high, 1.0)),
        series=series,
    )


def _length_series(mode: str, bins: Sequence[LengthBin], *, shift: float) -> Series:
    defined = [(place + shift, part) for place, part in enumerate(bins) if part.value is not None]
    points: list[Point] = [(place, part.value or 0.0) for place, part in defined]
    return Series(mode, points, kind="marked", whiskers=[part.interval for _, part in defined])
