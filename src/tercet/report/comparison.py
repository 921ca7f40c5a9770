"""How a comparison of models is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tercet.evaluation import presentation as show
from tercet.evaluation.compare import Comparison, Difference, Disagreement, MetricComparison
from tercet.evaluation.metrics import Bounds
from tercet.evaluation.suites import SUITES


def verdict(comparison: Comparison) -> str:
    """Which later model is better or worse than the first on what, beyond chance or not."""
    first = comparison.names[0]
    sentences = [
        _verdict(name, first, _judged(comparison, place))
        for place, name in enumerate(comparison.names[1:])
    ]
    return " ".join(sentences)


def _judged(comparison: Comparison, place: int) -> dict[str, list[str]]:
    """Tasks by verdict, from their main metrics; those that are better or worse with how much."""
    judged: dict[str, list[str]] = {"better": [], "worse": [], "": []}
    for metric in comparison.metrics:
        found = metric.differences[place]
        if not metric.chosen or found is None or found.value is None or found.interval is None:
            continue
        how = f"{metric.task} ({metric.metric} {found.value:+.3f})"
        word = direction(found.interval)
        judged[word].append(how if word else metric.task)
    return judged


def _verdict(name: str, first: str, judged: Mapping[str, list[str]]) -> str:
    better, worse, unclear = (judged[word] for word in ("better", "worse", ""))
    parts = [
        f"{word} on {show.enumeration(tasks)}"
        for word, tasks in (("better", better), ("worse", worse))
        if tasks
    ]
    chance = f"no difference beyond chance on {show.enumeration(unclear)}" if unclear else ""
    if parts:
        sentence = f"{name} is {' and '.join(parts)} than {first}, beyond chance"
        return f"{sentence}; there is {chance}." if chance else f"{sentence}."
    if chance:
        return f"Between {name} and {first} there is {chance}."
    return f"{name} and {first} share no task with a defined main metric, so neither is better."


def comparison_sections(comparison: Comparison) -> list[show.Section]:
    parts = {
        "Metrics": (
            [metrics_table(comparison), suite_metrics_table(comparison)],
            metrics_chart(comparison),
        ),
        "Beyond chance": ([differences_table(comparison)], differences_chart(comparison)),
        "Where they differ": ([disagreements_table(comparison)], None),
    }
    sections = [
        show.Section(
            title,
            tables=[table for table in tables if table.rows],
            charts=[] if chart is None or not chart.series else [chart],
        )
        for title, (tables, chart) in parts.items()
    ]
    return [section for section in sections if not section.empty]


def metrics_chart(comparison: Comparison) -> show.Chart:
    """The main metric of each task: a dot with its interval for every model."""
    chosen = [metric for metric in comparison.metrics if metric.chosen]
    names = [f"{metric.task}, {metric.metric}" for metric in chosen]
    values = {
        name: [(metric.values[place], metric.intervals[place]) for metric in chosen]
        for place, name in enumerate(comparison.names)
    }
    return _dot_chart(
        "Main metrics",
        names,
        values,
        label="metric",
        note="With the 95 % interval of each model by itself.",
    )


def differences_chart(comparison: Comparison) -> show.Chart:
    """The difference of each later model from the first, of the main metric of each task."""
    chosen = [metric for metric in comparison.metrics if metric.chosen]
    names = [f"{metric.task}, {metric.metric}" for metric in chosen]
    values = {
        name: [
            (None, None) if found is None else (found.value, found.interval)
            for found in (metric.differences[place] for metric in chosen)
        ]
        for place, name in enumerate(comparison.names[1:])
    }
    first = comparison.names[0]
    return _dot_chart(
        f"Difference from {first}",
        names,
        values,
        label="difference",
        note=f"Right of 0 a model is better than {first}. An interval without 0 is beyond chance.",
        zero=True,
    )


Dots = Sequence[tuple[float | None, Bounds | None]]
"""A value and its interval for each line of a chart; None where there is none."""


def _dot_chart(
    title: str,
    names: Sequence[str],
    values: Mapping[str, Dots],
    *,
    label: str,
    note: str,
    zero: bool = False,
) -> show.Chart:
    """One line per name, on it one dot per model; `zero`: mark the 0."""
    series = [
        # Side by side, so that intervals do not hide one another.
        _dots(model, dots, shift=(place - (len(values) - 1) / 2.0) * 0.6 / len(values), place=place)
        for place, (model, dots) in enumerate(values.items())
    ]
    series = [each for each in series if each.points]
    bounds = [bound for each in series for pair in each.whiskers if pair for bound in pair]
    drawn = [x for each in series for x, _ in each.points] + bounds + ([0.0] if zero else [])
    sentences = [
        f"{model}: "
        + ", ".join(
            f"{name} {show.decimal(value)}"
            for name, (value, _) in zip(names, dots, strict=True)
            if value is not None
        )
        for model, dots in values.items()
    ]
    return show.Chart(
        title=title,
        note=note,
        alternative=f"{title} of {len(values)} models by task. {'. '.join(sentences)}.",
        x=show.Axis(label, *show.padded(drawn, least=0.02)),
        # The first line is at the top.
        y=show.Axis("", len(names) - 0.5, -0.5, names),
        series=series,
        marks=[(0.0, "")] if zero else [],
        whiskers="x",
    )


def _dots(name: str, dots: Dots, *, shift: float, place: int) -> show.Series:
    """Every second model has rings, so that models differ not only in colour."""
    defined = [
        (value, line + shift, interval)
        for line, (value, interval) in enumerate(dots)
        if value is not None
    ]
    return show.Series(
        name,
        [(value, line) for value, line, _ in defined],
        kind="rings" if place % 2 else "dots",
        whiskers=[interval for _, _, interval in defined],
    )


def metrics_table(comparison: Comparison) -> show.Table:
    """All models' metrics on their tasks."""
    rows = [
        [
            show.Cell(metric.task),
            show.Cell(_name(metric)),
            *(
                show.Cell("no such task") if mode is None else show.number(value)
                for mode, value in zip(metric.modes, metric.values, strict=True)
            ),
            show.count(metric.rows),
        ]
        for metric in comparison.metrics
    ]
    return show.Table(
        caption="Metrics of each model's most accurate mode; * marks the main metric of a task",
        columns=["Task", "Metric", *comparison.names, "Rows"],
        rows=rows,
    )


def suite_metrics_table(comparison: Comparison) -> show.Table:
    """The metrics of the suites, of all models."""
    return show.Table(
        caption="Metrics of the other suites, side by side",
        columns=["Suite", "Metric", *comparison.names],
        rows=[
            [
                show.Cell(SUITES[metric.suite].title),
                show.Cell(metric.metric),
                *(
                    show.Cell("") if it is None else show.estimate_cells(it)[0]
                    for it in metric.values
                ),
            ]
            for metric in comparison.suite_metrics
        ],
    )


def differences_table(comparison: Comparison) -> show.Table:
    """The difference of each later model from the first."""
    rows = []
    for place, name in enumerate(comparison.names[1:]):
        for metric in comparison.metrics:
            if (difference := metric.differences[place]) is not None:
                cells = [show.Cell(name), show.Cell(metric.task), show.Cell(_name(metric))]
                rows.append([*cells, *_difference_cells(difference)])
    return show.Table(
        caption=f"Each model against {comparison.names[0]}, by a paired bootstrap of the same rows",
        columns=["Model", "Task", "Metric", "Difference", show.INTERVAL, "p", "Verdict"],
        rows=rows,
    )


def _name(metric: MetricComparison) -> str:
    return f"{metric.metric}*" if metric.chosen else metric.metric


def direction(interval: Bounds) -> str:
    """`better` or `worse` if the interval of a difference excludes 0; else empty."""
    return "better" if interval[0] > 0 else "worse" if interval[1] < 0 else ""


def _difference_cells(difference: Difference) -> list[show.Cell]:
    value, interval, p = difference.value, difference.interval, difference.p
    if value is None or interval is None or p is None:
        return [show.Cell("undefined"), show.Cell(""), show.Cell(""), show.Cell("")]
    shown = show.Cell("below 0.002" if p < 0.002 else show.decimal(p), p)
    return [
        show.Cell(f"{value:+.3f}", value),
        show.interval_cell(interval),
        shown,
        show.Cell(direction(interval) or "no clear difference"),
    ]


def disagreements_table(comparison: Comparison) -> show.Table:
    """Sentences that the models predict differently; a model without predictions is left out."""
    by_task: dict[str, list[Disagreement]] = {}
    for disagreement in comparison.disagreements:
        by_task.setdefault(disagreement.task, []).append(disagreement)
    ranked = show.interleave(by_task.values())
    models = [
        (place, name)
        for place, name in enumerate(comparison.names)
        if any(each.predicted[place] for each in ranked)
    ]
    names = [name for _, name in models]
    return show.Table(
        caption="Sentences on which the models differ, of each task the furthest apart first: in "
        "the probability of the right class, or in the grade",
        columns=["Sentence", "Task", "Expected", *names, "Apart"],
        rows=[
            [
                show.Cell("\n".join(each.inputs)),
                show.Cell(each.task),
                show.Cell(each.expected),
                *(_prediction_cell(each, place) for place, _ in models),
                show.Cell(f"{each.distance:.2f}", each.distance),
            ]
            for each in ranked
        ],
        filters=["Task", "Expected", *names],
    )


def _prediction_cell(disagreement: Disagreement, place: int) -> show.Cell:
    if not disagreement.predicted[place]:
        return show.Cell("")
    right = disagreement.right[place]
    return show.Cell(disagreement.predicted[place], mark="right" if right else "wrong")
