"""An evaluation as plain tables, one or more a suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tercet.evaluate.evaluation import Evaluation
from tercet.evaluate.results import Figure, TasksResult

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    title: str
    columns: Cells
    rows: list[Cells]


def summaries(evaluation: Evaluation) -> list[Summary]:
    """The figures of every suite that was run, in their order."""
    shown = []
    for result in evaluation.suites.values():
        if isinstance(result, TasksResult):
            columns = ("task", "gear", "rows", "metric", "figure", "95 % interval")
            shown.append(Summary("tasks", columns, list(_tasks(result))))
    return shown


def _value(figure: float | None) -> str:
    return "undefined" if figure is None else f"{figure:.4f}"


def _bounds(figure: Figure) -> str:
    if figure.interval is None:
        return ""
    low, high = figure.interval
    return f"{low:.4f} to {high:.4f}"


def _tasks(result: TasksResult) -> Iterator[Cells]:
    for name, task in result.tasks.items():
        for gear, found in task.gears.items():
            for metric, figure in found.metrics.items():
                marked = f"{metric}*" if metric == task.metric else metric
                yield name, gear, str(task.rows), marked, _value(figure.value), _bounds(figure)
            if found.calibration is not None:
                yield name, gear, str(task.rows), "ece", _value(found.calibration.ece), ""
    for mean, score in result.overall.items():
        yield "overall", "", "", mean, _value(score), ""
