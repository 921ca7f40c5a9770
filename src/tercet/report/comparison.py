"""How a comparison of models is shown."""

from __future__ import annotations

from tercet.evaluate.compare import Comparison, Difference, Disagreement, MetricComparison
from tercet.evaluate.presentation import (
    INTERVAL,
    Cell,
    Section,
    Table,
    count,
    decimal,
    estimate_cells,
    interleave,
    interval_cell,
    number,
)
from tercet.evaluate.suites import SUITES


def comparison_sections(comparison: Comparison) -> list[Section]:
    tables = {
        "Metrics": [metrics_table(comparison), suite_metrics_table(comparison)],
        "Beyond chance": [differences_table(comparison)],
        "Where they differ": [disagreements_table(comparison)],
    }
    sections = [
        Section(title, tables=[table for table in every if table.rows])
        for title, every in tables.items()
    ]
    return [section for section in sections if not section.empty]


def metrics_table(comparison: Comparison) -> Table:
    """All models' metrics on their tasks."""
    rows = [
        [
            Cell(metric.task),
            Cell(_name(metric)),
            *(
                Cell("no such task") if mode is None else number(value)
                for mode, value in zip(metric.modes, metric.values, strict=True)
            ),
            count(metric.rows),
        ]
        for metric in comparison.metrics
    ]
    return Table(
        caption="Metrics side by side, of each model's most accurate mode; * represents its task",
        columns=["Task", "Metric", *comparison.names, "Rows"],
        rows=rows,
        numeric=frozenset({*comparison.names, "Rows"}),
    )


def suite_metrics_table(comparison: Comparison) -> Table:
    """The metrics of the suites, of all models."""
    return Table(
        caption="Metrics of the other suites, side by side",
        columns=["Suite", "Metric", *comparison.names],
        rows=[
            [
                Cell(SUITES[metric.suite].title),
                Cell(metric.metric),
                *(Cell("") if it is None else estimate_cells(it)[0] for it in metric.values),
            ]
            for metric in comparison.suite_metrics
        ],
        numeric=frozenset(comparison.names),
    )


def differences_table(comparison: Comparison) -> Table:
    """The difference of each later model from the first."""
    rows = []
    for place, name in enumerate(comparison.names[1:]):
        for metric in comparison.metrics:
            if (difference := metric.differences[place]) is not None:
                cells = [Cell(name), Cell(metric.task), Cell(_name(metric))]
                rows.append([*cells, *_difference_cells(difference)])
    return Table(
        caption=f"Each model against {comparison.names[0]}, by a paired bootstrap of the same rows",
        columns=["Model", "Task", "Metric", "Difference", INTERVAL, "p", "Verdict"],
        rows=rows,
        numeric=frozenset({"Difference", "p"}),
    )


def _name(metric: MetricComparison) -> str:
    return f"{metric.metric}*" if metric.chosen else metric.metric


def _difference_cells(difference: Difference) -> list[Cell]:
    value, interval, p = difference.value, difference.interval, difference.p
    if value is None or interval is None or p is None:
        return [Cell("undefined"), Cell(""), Cell(""), Cell("")]
    verdict = "better" if interval[0] > 0 else "worse" if interval[1] < 0 else "no clear difference"
    shown = Cell("below 0.002" if p < 0.002 else decimal(p), p)
    return [Cell(f"{value:+.3f}", value), interval_cell(interval), shown, Cell(verdict)]


def disagreements_table(comparison: Comparison) -> Table:
    """Sentences that the models predict differently; a model without predictions is left out."""
    by_task: dict[str, list[Disagreement]] = {}
    for disagreement in comparison.disagreements:
        by_task.setdefault(disagreement.task, []).append(disagreement)
    ranked = interleave(by_task.values())
    models = [
        (place, name)
        for place, name in enumerate(comparison.names)
        if any(each.predicted[place] for each in ranked)
    ]
    names = [name for _, name in models]
    return Table(
        caption="Sentences on which the models differ, of each task the furthest apart first: in "
        "the probability of the right class, or in the grade",
        columns=["Sentence", "Task", "Expected", *names, "Apart"],
        rows=[
            [
                Cell("\n".join(each.inputs)),
                Cell(each.task),
                Cell(each.expected),
                *(_prediction_cell(each, place) for place, _ in models),
                Cell(f"{each.distance:.2f}", each.distance),
            ]
            for each in ranked
        ],
        numeric=frozenset({"Apart"}),
        filters=["Task", "Expected", *names],
    )


def _prediction_cell(disagreement: Disagreement, place: int) -> Cell:
    if not disagreement.predicted[place]:
        return Cell("")
    right = disagreement.right[place]
    return Cell(disagreement.predicted[place], mark="right" if right else "wrong")
