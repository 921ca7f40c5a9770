"""The suite `tasks`: every task of a model on its dev data, in every mode, by every metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.data.examples import Examples, read_examples
from tercet.data.files import MissingFileError
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.evaluate.bootstrap import interval
from tercet.evaluate.calibration import Calibration, measure_calibration
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.metrics import Figures, classification_metrics, grade_metrics
from tercet.evaluate.results import (
    Figure,
    Missing,
    ModeResult,
    TaskResult,
    TasksResult,
    overall_of,
    predicting_modes,
)
from tercet.evaluate.scaling import judged_rows
from tercet.folders.model_card import Metrics
from tercet.infer.engine import Engine, Floats, Progress
from tercet.model import Model
from tercet.network.network import Network
from tercet.specs import Mode, Scaling, Scalings, TaskSpec
from tercet.text.template import Template
from tercet.text.tokens import Pieces

SEED = 11711


def evaluate_tasks(
    model: Model,
    data_dir: Path,
    *,
    tasks: Mapping[str, TaskSpec] | None = None,
    rows: int | None = None,
    intervals: bool = True,
    corpus: Corpus | None = None,
) -> TasksResult:
    """Measure a model on the dev files of its tasks.

    tasks: which of them; all that predict when left out
    rows: only the first of each
    intervals: whether each figure gets its 95 % bootstrap interval
    corpus: where vectors are kept for other suites
    """
    specs = {name: spec for name, spec in (tasks or model.tasks).items() if spec.predicts}
    if not specs:
        raise TercetError("This model has no task to measure; it can only embed.")
    corpus = corpus or Corpus(model)
    examples: dict[str, Examples] = {}
    missing: list[Missing] = []
    for name, spec in specs.items():
        try:
            examples[name] = read_examples(spec, "dev", data_dir)
        except MissingFileError as error:
            missing.append(Missing("tasks", name, error.file))
    texts = {name: _first_texts(found, rows) for name, found in examples.items()}
    results = {
        name: _measure(corpus, name, specs[name], found, texts[name], intervals)
        for name, found in examples.items()
    }
    result = TasksResult(results, {}, texts, missing)
    if missing:
        return replace(result, overall={"mean": None, "mean-shifted": None})
    return replace(result, overall=overall_of(result.metrics, specs))


def _first_texts(examples: Examples, rows: int | None) -> tuple[list[str], ...]:
    return tuple(column[:rows] for column in examples.texts)


def _measure(
    corpus: Corpus,
    name: str,
    spec: TaskSpec,
    examples: Examples,
    texts: tuple[list[str], ...],
    intervals: bool,
) -> TaskResult:
    assert examples.labels is not None
    labels = examples.labels[: len(texts[0])]
    scalings = (corpus.model.info.scalings or {}).get(name, {})
    modes: dict[Mode, ModeResult] = {}
    for mode in predicting_modes(spec):
        outputs = corpus.outputs(name, mode, texts)
        predicted = corpus.model.engine.predict(name, mode, outputs)
        values = measured(spec, outputs, predicted)
        calibration = None
        if spec.labels is not None:
            scaling = scalings.get(mode)
            rows = None if scaling is None else judged_rows(spec, len(examples))
            calibration = _calibration(labels, predicted, rows, scaling)
        metrics = {
            metric: Figure(value, interval(metric, labels, values, SEED) if intervals else None)
            for metric, value in figures_of(spec, labels, values).items()
        }
        uncut = None if values is predicted else values
        modes[mode] = ModeResult(metrics, labels, predicted, calibration, uncut)
    return TaskResult(
        rows=len(labels),
        skipped=list(examples.skipped),
        files=[path.name for path in examples.files],
        metric=spec.chosen_metric,
        classes=spec.labels,
        modes=modes,
    )


def _calibration(
    labels: NDArray[Any],
    predicted: Floats,
    rows: NDArray[np.int64] | None,
    scaling: Scaling | None,
) -> Calibration:
    """Of all rows, or of those of `rows` that were predicted."""
    if rows is not None:
        chosen = rows[rows < len(labels)]
        labels, predicted = labels[chosen], predicted[chosen]
    return measure_calibration(labels, predicted, scaling=scaling)


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
    progress: Progress | None = None,
) -> Metrics:
    """Every metric of every mode of the tasks that predict, without intervals.

    tables: the dev tables of those tasks
    rows: only the first of each
    scalings: of classifiers that have been calibrated
    """
    scored = {name: specs[name] for name in tables if specs[name].predicts}
    engine = Engine(network, template, max_tokens, bf16, scalings or {})
    metrics: Metrics = {name: {} for name in scored}
    for name, mode, labels, values in _values(engine, tables, scored, rows, progress):
        metrics[name][mode] = figures_of(scored[name], labels, values)
    return metrics


def _values(
    engine: Engine,
    tables: Mapping[str, TaskTable],
    specs: Mapping[str, TaskSpec],
    rows: int | None,
    progress: Progress | None,
) -> Iterator[tuple[str, Mode, Floats, Floats]]:
    """Task, mode, labels [n] and what is `measured`, of every task and mode."""
    counts = {name: _count(tables[name], rows) for name in specs}
    total = sum(counts[name] * len(predicting_modes(spec)) for name, spec in specs.items())
    done = 0
    for name, spec in specs.items():
        table, count = tables[name], counts[name]
        assert table.labels is not None
        for mode in predicting_modes(spec):
            columns = [_first(column, count) for column in table.columns[: _width(mode)]]
            told = _shifted(progress, start=done, rows=count, total=total)
            outputs = engine.outputs(name, mode, columns, progress=told)
            done += count
            values = measured(spec, outputs, engine.predict(name, mode, outputs))
            yield name, mode, np.asarray(table.labels[:count]), values


def _count(table: TaskTable, rows: int | None) -> int:
    return len(table) if rows is None else min(rows, len(table))


def _width(mode: Mode) -> int:
    return 1 if mode == "single" else 2


def _first(pieces: Pieces, count: int) -> Pieces:
    end = pieces.offsets[count]
    return Pieces(pieces.ids[:end], pieces.offsets[: count + 1], pieces.lengths[:count])


def _shifted(progress: Progress | None, *, start: int, rows: int, total: int) -> Progress | None:
    """Progress within one mode told as progress of the whole; bi counts sentences, not rows."""
    if progress is None:
        return None
    return lambda done, of: progress(start + rows * done // of, total)


def measured(spec: TaskSpec, outputs: Floats, predicted: Floats) -> Floats:
    """What a task's figures are figures of: its predictions, or a graded head's own number [n].

    A grade is that number, scaled, and cut to the task's range: correlations would count all that
    is cut as equal.
    """
    alone = spec.labels is None and outputs.shape[1] == 1
    return outputs[:, 0] if alone else predicted


def figures_of(spec: TaskSpec, labels: ArrayLike, values: Floats) -> Figures:
    """The metrics of what is `measured` of a task against its labels [n]."""
    if spec.labels is not None:
        return classification_metrics(labels, values)
    return grade_metrics(labels, values)
