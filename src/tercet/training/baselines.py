"""What the simplest models reach: the most frequent class, and a linear model on the encoder as it
is before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.data.table import TaskTable
from tercet.evaluation.label_thresholds import choose_label_thresholds
from tercet.evaluation.metrics import Values
from tercet.evaluation.scoring import measured, metrics_of
from tercet.evaluation.simple_scores import SimpleScores
from tercet.infer.engine import Engine
from tercet.specs import Floats, TaskSpec
from tercet.specs.predictions import sigmoid, softmax
from tercet.training.regression import fit_classes, fit_grades
from tercet.vectors import unit

FOLDS = 5
MOST_ROWS, LEAST_ROWS = 2000, 300
WORK = 4e10
"""Rows times parameters of the encoder that a CPU embeds in some seconds."""
SEED = 11711

Rows = NDArray[np.int64]


def measure_baselines(
    engine: Engine,
    tasks: Mapping[str, TaskSpec],
    *,
    train: Mapping[str, TaskTable],
    dev: Mapping[str, TaskTable],
) -> dict[str, SimpleScores]:
    """The scores of every task that learns labels, on dev or else by cross-validation.

    engine: with the encoder as it is before training
    """
    most = _most_rows(engine)
    return {
        name: _measure(engine, task, train[name], dev.get(name), most=most)
        for name, task in tasks.items()
        if task.answers and task.learns_labels and name in train
    }


def _most_rows(engine: Engine) -> int:
    """How many rows are enough, so that it takes seconds."""
    if engine.network.device.type == "cuda":
        return MOST_ROWS
    parameters = sum(part.numel() for part in engine.network.encoder.layers.parameters())
    return int(np.clip(WORK / parameters, LEAST_ROWS, MOST_ROWS))


def _measure(
    engine: Engine, task: TaskSpec, train: TaskTable, dev: TaskTable | None, *, most: int
) -> SimpleScores:
    train = train.take(_sample(len(train), most))
    inputs, blocks = linear_inputs(engine, task, train)
    assert train.labels is not None
    has_dev = dev is not None and dev.labels is not None
    thresholds: list[float] | None = None
    if task.multi_label or not has_dev:
        unseen = _cross_validated(task, inputs, train.labels, blocks)
    if task.multi_label:
        # By the rule of models: on rows that it was not fitted to, never on dev.
        thresholds = choose_label_thresholds(train.labels, sigmoid(unseen))
    if dev is not None and has_dev:
        dev = dev.take(_sample(len(dev), most))
        judged, method = cast(Labels, dev.labels), "dev"
        outputs = _fit(task, inputs, train.labels, blocks)(linear_inputs(engine, task, dev)[0])
    else:
        judged, method, outputs = train.labels, f"{FOLDS}-fold cross-validation", unseen
    return SimpleScores(
        metric=task.chosen_metric,
        majority=majority_score(task, train.labels, judged),
        linear=_score(task, judged, outputs, thresholds),
        rows=len(train),
        method=method,
    )


def majority_score(task: TaskSpec, train: Labels, judged: Labels) -> float | None:
    """The score of the most frequent class of `train` on `judged` labels; None for grades."""
    if task.labels is None:
        return None
    return _score(task, judged, np.repeat(_most_frequent(task, train), len(judged), axis=0))


def _sample(count: int, most: int) -> Rows:
    return np.sort(np.random.default_rng(SEED).permutation(count)[:most])


def linear_inputs(engine: Engine, task: TaskSpec, table: TaskTable) -> tuple[Floats, list[int]]:
    """Unit vectors [n, width], or (u, v, |u - v|, u * v) of pairs; and the widths of the parts."""
    columns = table.columns[: 1 if "single" in task.modes else 2]
    parts = [unit(engine.vectors(column)) for column in columns]
    if len(parts) == 2:
        u, v = parts
        parts = [u, v, np.abs(u - v), u * v]
    return np.concatenate(parts, axis=1), [part.shape[1] for part in parts]


def _fit(task: TaskSpec, inputs: Floats, labels: Labels, blocks: Sequence[int]) -> Any:
    if task.labels is None:
        return fit_grades(inputs, cast(Floats, labels), blocks=blocks).outputs
    return fit_classes(inputs, labels, outputs=len(task.labels), blocks=blocks).outputs


def _cross_validated(
    task: TaskSpec, inputs: Floats, labels: Labels, blocks: Sequence[int]
) -> Floats:
    outputs = np.zeros((len(labels), len(task.labels or "1")), np.float32)
    folds = np.random.default_rng(SEED).permutation(np.arange(len(labels)) % FOLDS)
    for fold in range(FOLDS):
        held = folds == fold
        if held.any() and not held.all():
            predict = _fit(task, inputs[~held], labels[~held], blocks)
            outputs[held] = predict(inputs[held])
    return outputs


def _most_frequent(task: TaskSpec, labels: Labels) -> Floats:
    """Outputs [1, classes] that predict the most frequent class, or all labels of most rows."""
    if task.multi_label:
        return np.asarray(labels.mean(axis=0, keepdims=True) - 0.5, np.float32)
    counts = np.bincount(np.asarray(labels, np.int64), minlength=len(task.labels or ()))
    return np.asarray(counts == counts.max(), np.float32)[None]


def _score(
    task: TaskSpec, labels: Labels, outputs: Floats, thresholds: Sequence[float] | None = None
) -> float | None:
    values: Floats = outputs
    if task.labels is not None:
        predicted = sigmoid(outputs) if task.multi_label else softmax(outputs)
        values = measured(task, outputs, predicted, thresholds)
    else:
        values = outputs[:, 0]
    metrics: Values = metrics_of(task, labels, values)
    return metrics[task.chosen_metric]
