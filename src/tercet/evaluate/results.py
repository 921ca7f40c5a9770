"""What the suite `tasks` found: figures of every task, mode and metric, and the overall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import BadRow
from tercet.errors import TercetError
from tercet.evaluate.calibration import Calibration, class_probabilities
from tercet.evaluate.metrics import GRADE_METRICS, Figures, overall
from tercet.folders.model_card import Metrics
from tercet.specs import Mode, TaskSpec

DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric's value, None where it is undefined, and its 95 % interval where asked for."""

    value: float | None
    interval: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "interval": self.interval}


@dataclass(frozen=True, slots=True)
class Missing:
    """A file that a suite needed for a task and did not find."""

    suite: str
    task: str
    file: str

    def to_json(self) -> dict[str, str]:
        return {"suite": self.suite, "task": self.task, "file": self.file}


@dataclass(frozen=True, slots=True)
class ModeResult:
    """What one mode of a task said of every row.

    labels: class numbers or grades [n]
    predictions: probabilities [n, classes], or of class 1 [n], or grades [n]
    calibration: of classifiers
    uncut: a graded head's own numbers [n], of which the grades are cut to the task's range
    """

    metrics: dict[str, Figure]
    labels: NDArray[Any]
    predictions: NDArray[np.float32]
    calibration: Calibration | None
    uncut: NDArray[np.float32] | None = None

    def to_json(self) -> dict[str, Any]:
        classes = self.calibration is not None
        told = class_probabilities(self.predictions) if classes else self.predictions
        return {
            "metrics": {metric: figure.to_json() for metric, figure in self.metrics.items()},
            "labels": rounded(self.labels),
            "predictions": rounded(told),
            "uncut": None if self.uncut is None else rounded(self.uncut),
            "calibration": self.calibration.to_json() if self.calibration else None,
        }


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The figures of one task.

    modes: the most exact mode first
    metric: the one that stands for the task
    classes: the names of its classes, None where it has grades
    """

    rows: int
    skipped: list[BadRow]
    files: list[str]
    metric: str
    classes: list[str] | None
    modes: dict[Mode, ModeResult]

    def to_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "rows": self.rows,
            "skipped": [
                {"file": Path(row.file).name, "line": row.line, "reason": row.reason}
                for row in self.skipped
            ],
            "metric": self.metric,
            "classes": self.classes,
            "modes": {mode: result.to_json() for mode, result in self.modes.items()},
        }


@dataclass(frozen=True, slots=True)
class TasksResult:
    """The figures of all tasks, and their mean: plain, and with (r + 1) / 2 for correlations.

    texts: the text columns of each task's rows; not part of the JSON
    missing: the files of tasks that could not be measured
    """

    tasks: dict[str, TaskResult]
    overall: Figures
    texts: dict[str, tuple[list[str], ...]]
    missing: list[Missing]

    @property
    def metrics(self) -> Metrics:
        """The values alone, as a model folder keeps them."""
        return {
            name: {
                mode: {metric: figure.value for metric, figure in result.metrics.items()}
                for mode, result in task.modes.items()
            }
            for name, task in self.tasks.items()
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "tasks": {name: task.to_json() for name, task in self.tasks.items()},
            "overall": self.overall,
        }


def rounded(values: NDArray[Any]) -> list[Any]:
    """Numbers as JSON holds them: classes whole, the rest to a few decimals."""
    if values.dtype.kind in "iu":
        return list(values.tolist())
    return list(values.astype(np.float64).round(DECIMALS).tolist())


def predicting_modes(task: TaskSpec) -> list[Mode]:
    """The modes of a task that have a head, the most exact first."""
    return list(task.predicting_modes)


def overall_of(metrics: Metrics, specs: Mapping[str, TaskSpec]) -> Figures:
    """`mean` and `mean-shifted` over the tasks' chosen metrics, of the most exact mode each.

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
    figures = metrics[task][predicting_modes(specs[task])[0]]
    if metric not in figures:
        known = ", ".join(figures)
        raise TercetError(f"evaluation.score {score!r}: task `{task}` is measured by {known}.")
    return figures[metric] or 0.0


def _chosen(metrics: dict[str, dict[str, float | None]], spec: TaskSpec) -> float | None:
    figures = metrics[predicting_modes(spec)[0]]
    if spec.chosen_metric not in figures:
        raise TercetError(
            f"metric {spec.chosen_metric!r} does not fit {len(spec.labels or [])} classes: use "
            f"one of {', '.join(figures)}."
        )
    return figures[spec.chosen_metric]
