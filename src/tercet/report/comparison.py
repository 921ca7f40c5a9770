"""How a comparison of models is shown."""

from __future__ import annotations

from tercet.evaluation import presentation as show
from tercet.evaluation.compare import Comparison, Difference, Disagreement, MetricComparison
from tercet.evaluation.suites import SUITES


def comparison_sections(comparison: Comparison) -> list[show.Section]:
    tables = {
        "Metrics": [metrics_table(comparison), suite_metrics_table(comparison)],
        "Beyond chance": [differences_table(comparison)],
        "Where they differ": [disagreements_table(comparison)],
    }
    sections = [
        show.Section(title, tables=[table for table in every if table.rows])
        for title, every in tables.items()
    ]
    return [section for section in sections if not section.empty]


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


def _difference_cells(difference: Difference) -> list[show.Cell]:
    value, interval, p = difference.value, difference.interval, difference.p
    if value is None or interval is None or p is None:
        return [show.Cell("undefined"), show.Cell(""), show.Cell(""), show.Cell("")]
    verdict = "better" if interval[0] > 0 else "worse" if interval[1] < 0 else "no clear difference"
    shown = show.Cell("below 0.002" if p < 0.002 else show.decimal(p), p)
    return [
        show.Cell(f"{value:+.3f}", value),
        show.interval_cell(interval),
        shown,
        show.Cell(verdict),
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
