"""Scores of a model's tasks: all metrics of all modes, and the number that represents them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tercet.errors import TercetError
from tercet.evaluation.metrics import (
    GRADE_METRICS,
    Values,
    classification_metrics,
    grade_metrics,
    multi_label_metrics,
    overall,
)
from tercet.folders.model_card import Metrics
from tercet.specs import Floats, Mode, Scalings, TaskSpec, Thresholds, decisions
from tercet.text.template import Template

if TYPE_CHECKING:
    from tercet.data.labels import Labels
    from tercet.data.table import TaskTable
    from tercet.infer.engine import Engine
    from tercet.network.network import Network
    from tercet.objectives.base import PredictiveObjective


Outputs = Mapping[tuple[str, Mode], Floats]


@dataclass(frozen=True, slots=True)
class DevScores:
    """What a network reaches on dev.

    metrics: of every task and mode, without intervals
    losses: of each task, the mean loss of its most accurate mode by its own objective
    outputs: of every task's head in each mode, float32 [n, outputs]
    """

    metrics: Metrics
    losses: dict[str, float]
    outputs: Outputs

    @property
    def loss(self) -> float:
        """The mean over the tasks."""
        return math.fsum(self.losses.values()) / max(1, len(self.losses))


def score_tables(
    network: Network,
    tables: Mapping[str, TaskTable],
    specs: Mapping[str, TaskSpec],
    template: Template,
    max_tokens: int,
    rows: int | None = None,
    *,
    scalings: Scalings | None = None,
    thresholds: Thresholds | None = None,
    known: Outputs | None = None,
    bf16: bool = False,
) -> DevScores:
    """The scores of the tasks that predict.

    tables: the dev tables of those tasks
    rows: only the first of each
    scalings: of calibrated classifiers
    thresholds: of tasks whose rows have several labels
    known: what the network gives for these rows; what is not known is encoded
    """
    from tercet.infer.engine import Engine

    scored = {name: specs[name] for name in tables if specs[name].predicts}
    engine = Engine(network, template, max_tokens, scalings or {}, bf16=bf16)
    metrics: Metrics = {name: {} for name in scored}
    losses: dict[str, float] = {}
    found: dict[tuple[str, Mode], Floats] = {}
    for name, mode, labels, outputs in _dev_outputs(engine, tables, scored, rows, known or {}):
        found[name, mode] = outputs
        spec, predicted = scored[name], engine.predict(name, mode, outputs)
        least = (thresholds or {}).get(name, {}).get(mode)
        values = measured(spec, outputs, predicted, least)
        metrics[name][mode] = metrics_of(spec, labels, values)
        if mode == best_mode(spec):
            losses[name] = _mean_loss(network.objectives[name, mode], outputs, labels)
    return DevScores(metrics, losses, found)


def _dev_outputs(
    engine: Engine,
    tables: Mapping[str, TaskTable],
    specs: Mapping[str, TaskSpec],
    rows: int | None,
    known: Outputs,
) -> Iterator[tuple[str, Mode, Labels, Floats]]:
    """Task, mode, labels [n] or [n, classes] and the head's outputs [n, outputs] of each."""
    for name, spec in specs.items():
        table = tables[name]
        count = len(table) if rows is None else min(rows, len(table))
        assert table.labels is not None
        for mode in spec.predicting_modes:
            used = table.columns[: 1 if mode == "single" else 2]
            outputs = known.get((name, mode))
            if outputs is None:
                outputs = engine.outputs(name, mode, [column.first(count) for column in used])
            yield name, mode, table.labels[:count].copy(), outputs


def _mean_loss(objective: PredictiveObjective, outputs: Floats, labels: Labels) -> float:
    import torch

    raw, expected = torch.from_numpy(outputs), torch.from_numpy(labels)
    return float(objective.loss(raw, expected, total=max(1, len(labels))))


def measured(
    spec: TaskSpec, outputs: Floats, predicted: Floats, thresholds: Sequence[float] | None = None
) -> Floats:
    """What a task's metrics are computed from: its predictions, a graded head's output [n], or the
    labels that a row is predicted to have [n, classes].

    A grade is that output, scaled and clipped to the task's range; a correlation of grades would
    treat all clipped rows as equal.

    thresholds: of the labels, where rows may have several; default: one half each
    """
    if spec.multi_label:
        return decisions(predicted, thresholds).astype(np.float32)
    single = spec.labels is None and outputs.shape[1] == 1
    return outputs[:, 0] if single else predicted


def metrics_of(spec: TaskSpec, labels: ArrayLike, values: Floats) -> Values:
    """The metrics of `measured` values of a task against its labels [n] or [n, classes]."""
    if spec.multi_label:
        return multi_label_metrics(labels, values)
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
