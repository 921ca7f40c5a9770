"""Scores of a model's tasks: all metrics of all modes, and the number that represents them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tercet.errors import TercetError
from tercet.evaluation.metrics import (
    GRADE_METRICS,
    Values,
    classification_metrics,
    grade_metrics,
    overall,
)
from tercet.folders.model_card import Metrics
from tercet.specs import Floats, Mode, Scalings, TaskSpec
from tercet.text.template import Template

if TYPE_CHECKING:
    from tercet.data.table import TaskTable
    from tercet.infer.engine import Engine
    from tercet.network.network import Network


def score_tables(
    network: Network,
    tables: Mapping[str, TaskTable],
    specs: Mapping[str, TaskSpec],
    template: Template,
    max_tokens: int,
    rows: int | None = None,
    *,
    scalings: Scalings | None = None,
    bf16: bool = False,
) -> Metrics:
    """Every metric of every mode of the tasks that predict, without intervals.

    tables: the dev tables of those tasks
    rows: only the first of each
    scalings: of calibrated classifiers
    """
    from tercet.infer.engine import Engine

    scored = {name: specs[name] for name in tables if specs[name].predicts}
    engine = Engine(network, template, max_tokens, scalings or {}, bf16=bf16)
    metrics: Metrics = {name: {} for name in scored}
    for name, mode, labels, values in _measured_values(engine, tables, scored, rows):
        metrics[name][mode] = metrics_of(scored[name], labels, values)
    return metrics


def _measured_values(
    engine: Engine, tables: Mapping[str, TaskTable], specs: Mapping[str, TaskSpec], rows: int | None
) -> Iterator[tuple[str, Mode, Floats, Floats]]:
    """Task, mode, labels [n] and `measured` values of every task and mode."""
    for name, spec in specs.items():
        table = tables[name]
        count = len(table) if rows is None else min(rows, len(table))
        assert table.labels is not None
        for mode in spec.predicting_modes:
            used = table.columns[: 1 if mode == "single" else 2]
            outputs = engine.outputs(name, mode, [column.first(count) for column in used])
            values = measured(spec, outputs, engine.predict(name, mode, outputs))
            yield name, mode, np.asarray(table.labels[:count]), values


def measured(spec: TaskSpec, outputs: Floats, predicted: Floats) -> Floats:
    """What a task's metrics are computed from: its predictions, or a graded head's output [n].

    A grade is that output, scaled and clipped to the task's range; a correlation of grades would
    treat all clipped rows as equal.
    """
    single = spec.labels is None and outputs.shape[1] == 1
    return outputs[:, 0] if single else predicted


def metrics_of(spec: TaskSpec, labels: ArrayLike, values: Floats) -> Values:
    """The metrics of `measured` values of a task against its labels [n]."""
    if spec.labels is not None:
        return classification_metrics(labels, values)
    return grade_metrics(labels, values)


def best_mode(task: TaskSpec) -> Mode:
    """The most accurate mode of a task."""
    return next(iter(task.predicting_modes))


def overall_of(metrics: Metrics, specs: Mapping[str, TaskSpec]) -> Values:
    """`mean` and `mean-shifted` of the tasks' chosen metrics, each of its most accurate mode.

    An undefined metric counts as 0: a model that always predicts the same knows nothing.
    """
    scores = {task: _chosen(metrics[task], specs[task]) or 0.0 for task in metrics}
    shifted = {task for task in metrics if specs[task].chosen_metric in GRADE_METRICS}
    return overall(scores, shifted=shifted)


def score_of(metrics: Metrics, specs: Mapping[str, TaskSpec], score: str) -> float:
    """The value that a recipe's `evaluation.score` names; an undefined one counts as 0."""
    means = overall_of(metrics, specs)
    if score in means:
        return means[score] or 0.0
    task, _, metric = score.partition(".")
    values = metrics[task][best_mode(specs[task])]
    if metric not in values:
        known = ", ".join(values)
        raise TercetError(f"evaluation.score {score!r}: task `{task}` is measured by {known}.")
    return values[metric] or 0.0


def _chosen(metrics: dict[str, dict[str, float | None]], spec: TaskSpec) -> float | None:
    values = metrics[best_mode(spec)]
    if spec.chosen_metric not in values:
        raise TercetError(
            f"metric {spec.chosen_metric!r} does not fit {len(spec.labels or [])} classes: use "
            f"one of {', '.join(values)}."
        )
    return values[spec.chosen_metric]
