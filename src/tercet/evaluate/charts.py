"""The charts of an evaluation and of a run, each with its story in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tercet.data.columns import shorten
from tercet.evaluate.answers import SHOWN, Answers, Document
from tercet.evaluate.details import LengthBin, by_length, precision_recall, word_counts
from tercet.evaluate.figures import Axis, Chart, Point, SentenceMap, Series, padded, sentence_map
from tercet.evaluate.run_history import Curve, RunHistory
from tercet.evaluate.suite_tables import TITLES
from tercet.evaluate.tables import figure

DOTS = 2_000
"""At most so many on a scatter."""
SET_DOTS = 500
CURVE = 200


def scatter(answers: Answers) -> Chart:
    """Predicted grades over expected ones."""
    rows = _picked(len(answers.labels), DOTS)
    points = list(zip(answers.labels[rows], answers.predictions[rows], strict=True))
    low, high = padded([*answers.labels, *answers.predictions])
    shown = "" if len(rows) == len(answers.labels) else f" {len(rows):,} of them are drawn."
    off = float(np.abs(answers.predictions - answers.labels).mean()) if len(rows) else None
    return Chart(
        title=f"Predicted over expected grades, mode {answers.mode}",
        note="Above the dotted line they are too high, below it too low.",
        alternative=(
            f"Scatter of {len(answers.labels):,} predicted grades of {answers.task} over the "
            f"expected ones, mode {answers.mode}; on average they are off by {figure(off, 2)}."
            f"{shown}"
        ),
        x=Axis("expected", low, high),
        y=Axis("predicted", low, high),
        series=[Series(answers.mode, points, kind="cloud")],
        diagonal=True,
    )


def sts_charts(suite: Mapping[str, Any]) -> list[Chart]:
    """Cosines over grades, of each set."""
    charts = []
    for name, one in suite["sets"].items():
        rows = _picked(len(one["grades"]), SET_DOTS)
        points = [(one["grades"][row], one["cosines"][row]) for row in rows]
        low, high = padded([y for _, y in points])
        charts.append(
            Chart(
                title=name,
                alternative=(
                    f"Scatter of cosines over grades of {one['pairs']:,} pairs of {name}, of which "
                    f"{len(rows):,} are drawn; Spearman {figure(one['spearman']['value'])}."
                ),
                x=Axis("grade", -0.1, 5.1),
                y=Axis("cosine", low, high),
                series=[Series(name, points, kind="cloud")],
            )
        )
    return charts


def precision_recall_chart(answers: Sequence[Answers]) -> Chart:
    """The curve of each mode of a task with two classes."""
    series, told = [], []
    for one in answers:
        curve = None if one.positive is None else precision_recall(one.labels, one.positive)
        if curve is None:
            told.append(f"{one.mode}: undefined, as no row is of class 1")
            continue
        rows = _picked(len(curve.recall), CURVE)
        points = [(float(curve.recall[row]), float(curve.precision[row])) for row in rows]
        series.append(Series(f"{one.mode}, average precision {curve.average:.3f}", points))
        half = float(curve.precision[curve.recall >= 0.5].max())
        told.append(
            f"{one.mode}: average precision {curve.average:.3f}, precision {half:.3f} at recall 0.5"
        )
    return Chart(
        title="Precision over recall",
        alternative=f"Precision-recall curve of {answers[0].task}. {'. '.join(told)}.",
        x=Axis("recall", 0.0, 1.0),
        y=Axis("precision", 0.0, 1.0),
        series=series,
    )


def reliability_chart(task: str, modes: Mapping[str, Any]) -> Chart:
    """How often the likeliest class is right, over how sure the model is.

    modes: of each mode its calibration, as the document has it
    """
    series, told = [], []
    for mode, one in modes.items():
        bins = [part for part in one["bins"] if part["rows"]]
        points = [(part["confidence"], part["accuracy"]) for part in bins]
        rows = sum(part["rows"] for part in bins)
        error = figure(one["ece"])
        series.append(
            Series(
                f"{mode}, calibration error {error}",
                points,
                kind="dots",
                weights=[part["rows"] / rows for part in bins],
            )
        )
        told.append(f"{mode}: expected calibration error {error}")
    return Chart(
        title="Reliability",
        note="Below the dotted line it is surer than right. Larger dots stand for more rows.",
        alternative=(
            f"Reliability of {task}: accuracy over confidence, in bins; on the dotted line a model "
            f"is as sure as it is right. {'. '.join(told)}."
        ),
        x=Axis("confidence", 0.0, 1.0),
        y=Axis("accuracy", 0.0, 1.0),
        series=series,
        diagonal=True,
    )


def length_chart(answers: Sequence[Answers]) -> Chart:
    """A task's metric over the number of words, of each mode."""
    words, metric = word_counts(answers[0].texts), answers[0].metric
    every = [by_length(metric, one.labels, one.measured, words) for one in answers]
    series = [
        # Beside each other, so that intervals do not hide one another.
        _length_series(one.mode, bins, shift=(place - (len(every) - 1) / 2.0) * 0.14)
        for place, (one, bins) in enumerate(zip(answers, every, strict=True))
    ]
    names = [_range(one.shortest, one.longest) for one in every[0]]
    spans = [bound for one in series for bounds in one.whiskers if bounds for bound in bounds]
    values = [y for one in series for _, y in one.points]
    low, high = padded([*values, *spans], least=0.2)
    told = [
        f"{one.mode}: "
        + ", ".join(f"{name} words {figure(b.value)}" for name, b in zip(names, bins, strict=True))
        for one, bins in zip(answers, every, strict=True)
    ]
    return Chart(
        title=f"{metric.capitalize()} by length",
        note="With 95 % intervals, of about as many rows each.",
        alternative=f"{metric} of {answers[0].task} by number of words. {'. '.join(told)}.",
        x=Axis(
            "words" if len(answers[0].texts) == 1 else "words of both sentences",
            -0.4,
            len(names) - 0.6,
            names,
        ),
        y=Axis(metric, max(low, -1.0), min(high, 1.0)),
        series=series,
    )


def _length_series(mode: str, bins: Sequence[LengthBin], *, shift: float) -> Series:
    defined = [(place + shift, one) for place, one in enumerate(bins) if one.value is not None]
    points: list[Point] = [(place, one.value or 0.0) for place, one in defined]
    return Series(mode, points, kind="dots", whiskers=[one.interval for _, one in defined])


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def run_charts(run: RunHistory) -> list[Chart]:
    """Dev figures, losses by task, and cosines between the tasks' gradients."""
    charts = []
    if run.scores:
        charts.append(_curves(run, run.scores, "Figures on dev", "figure", marked=True))
    charts += [
        _curves(run, {task: curve}, f"Loss of {task}", "loss") for task, curve in run.losses.items()
    ]
    if run.cosines:
        charts.append(_curves(run, run.cosines, "Cosines between gradients", "cosine"))
    return charts


def _curves(
    run: RunHistory, curves: Mapping[str, Curve], title: str, label: str, *, marked: bool = False
) -> Chart:
    told = [
        f"{name}: from {curve[0][1]:.3f} at step {curve[0][0]:,.0f} to {curve[-1][1]:.3f} at step "
        f"{curve[-1][0]:,.0f}"
        for name, curve in curves.items()
    ]
    values = [value for curve in curves.values() for _, value in curve]
    low, high = padded(values, least=1e-3)
    return Chart(
        title=title,
        alternative=f"{title} over {run.steps:,} steps. {'. '.join(told)}.",
        x=Axis("step", 0.0, float(run.steps)),
        y=Axis(label, low, high),
        series=[
            Series(name, curve, kind="dots" if marked else "line") for name, curve in curves.items()
        ],
        marks=[(float(step), stage) for stage, step in run.stages] if len(run.stages) > 1 else [],
    )


def _picked(count: int, most: int) -> list[int]:
    """Places spread evenly over a range, ends included."""
    places = np.linspace(0, count - 1, min(count, most)).round().astype(int)
    return [int(place) for place in places]


def geometry_figures(
    suite: Mapping[str, Any], sentences: Sequence[str]
) -> list[Chart | SentenceMap]:
    """The map of sentences and the spectrum, as far as they could be made.

    sentences: those on the map; their groups stand for them where they were not kept
    """
    figures: list[Chart | SentenceMap] = []
    if plane := suite["map"]:
        groups = plane["groups"]
        share = sum(plane["explained"])
        told = ", ".join(f"{groups.count(name):,} of {name}" for name in dict.fromkeys(groups))
        figures.append(
            sentence_map(
                "Dev sentences on a plane",
                [(x, y) for x, y in plane["points"]],
                [shorten(text, SHOWN) for text in sentences]
                or [f"a sentence of {name}" for name in groups],
                kinds=groups,
                alternative=(
                    f"Map of {len(groups):,} sentences by two principal components, which hold "
                    f"{share:.0%} of the variance: {told}. The slider below reads them out."
                ),
                note=(
                    "Like ones lie close, as far as a plane can show it: its two principal "
                    f"components hold {share:.0%} of the variance."
                ),
            )
        )
    if suite["spectrum"]:
        figures.append(_spectrum_chart(suite["spectrum"]["shares"]))
    return figures


def _spectrum_chart(shares: Sequence[float]) -> Chart:
    held = np.cumsum(shares)
    points = [(place + 1.0, float(held[place])) for place in _picked(len(shares), CURVE)]
    half = int(np.searchsorted(held, 0.5)) + 1
    return Chart(
        title="Variance held by the first directions",
        alternative=(
            f"Share of the vectors' variance that their first directions hold: {half:,} of "
            f"{len(shares):,} hold half of it."
        ),
        x=Axis("directions", 0.0, float(len(shares))),
        y=Axis("share of variance", 0.0, 1.0),
        series=[Series("held", points)],
    )


def suite_figures(
    document: Document, sentences: Sequence[str]
) -> dict[str, list[Chart | SentenceMap]]:
    """The figures of the suites beyond `tasks`, under their titles; `sentences` are the map's."""
    suites = document["suites"]
    found: dict[str, list[Chart | SentenceMap]] = {}
    if "sts" in suites:
        found[TITLES["sts"]] = [*sts_charts(suites["sts"])]
    if "geometry" in suites:
        found[TITLES["geometry"]] = geometry_figures(suites["geometry"], sentences)
    return found
