"""What the suite `tasks` found: figures of every task, gear and metric, and the overall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tercet.data.examples import BadRow
from tercet.errors import TercetError
from tercet.evaluate.metrics import GRADE_METRICS, Figures, overall
from tercet.model_card import Metrics
from tercet.specs import Gear, TaskSpec


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric's value, None where it is undefined, and its 95 % interval where asked for."""

    value: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The figures of one task.

    gears: of each gear, of each metric; the most exact gear first
    metric: the one that stands for the task
    """

    rows: int
    skipped: list[BadRow]
    files: list[str]
    metric: str
    gears: dict[Gear, dict[str, Figure]]


@dataclass(frozen=True, slots=True)
class TasksResult:
    """The figures of all tasks, and their mean: plain, and with (r + 1) / 2 for correlations."""

    tasks: dict[str, TaskResult]
    overall: Figures

    @property
    def metrics(self) -> Metrics:
        """The values alone, as a model folder keeps them."""
        return {
            name: {
                gear: {metric: figure.value for metric, figure in figures.items()}
                for gear, figures in task.gears.items()
            }
            for name, task in self.tasks.items()
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "tasks": {name: _task_json(task) for name, task in self.tasks.items()},
            "overall": self.overall,
        }


def _task_json(task: TaskResult) -> dict[str, Any]:
    return {
        "files": task.files,
        "rows": task.rows,
        "skipped": [
            {"file": Path(row.file).name, "line": row.line, "reason": row.reason}
            for row in task.skipped
        ],
        "metric": task.metric,
        "gears": {
            gear: {
                metric: {"value": figure.value, "interval": figure.interval}
                for metric, figure in figures.items()
            }
            for gear, figures in task.gears.items()
        },
    }


def predicting_gears(task: TaskSpec) -> list[Gear]:
    """The gears of a task that have a head, the most exact first."""
    return [gear for gear, spec in task.gears.items() if not spec.on_vectors]


def overall_of(metrics: Metrics, specs: Mapping[str, TaskSpec]) -> Figures:
    """`mean` and `mean-shifted` over the tasks' chosen metrics, of the most exact gear each.

    An undefined figure counts as 0: a model that says the same of everything knows nothing.
    """
    scores = {task: _chosen(metrics[task], specs[task]) or 0.0 for task in metrics}
    shifted = {task for task in metrics if specs[task].chosen_metric in GRADE_METRICS}
    return overall(scores, shifted=shifted)


def score_of(metrics: Metrics, specs: Mapping[str, TaskSpec], score: str) -> float:
    """The figure that a recipe's `evaluation.score` names; an undefined one counts as 0."""
    means = overall_of(metrics, specs)
    if score in means:
        return means[score] or 0.0
    task, _, metric = score.partition(".")
    figures = metrics[task][predicting_gears(specs[task])[0]]
    if metric not in figures:
        known = ", ".join(figures)
        raise TercetError(f"evaluation.score {score!r}: task `{task}` is measured by {known}.")
    return figures[metric] or 0.0


def _chosen(metrics: dict[str, dict[str, float | None]], spec: TaskSpec) -> float | None:
    figures = metrics[predicting_gears(spec)[0]]
    if spec.chosen_metric not in figures:
        raise TercetError(
            f"metric {spec.chosen_metric!r} does not fit {len(spec.labels or [])} classes: use "
            f"one of {', '.join(figures)}."
        )
    return figures[spec.chosen_metric]
