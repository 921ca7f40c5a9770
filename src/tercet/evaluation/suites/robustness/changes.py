"""Dev rows changed by rule: what a head predicts before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.changes import PERTURBATIONS
from tercet.data.changes.record import Change
from tercet.data.examples import Examples
from tercet.evaluation import presentation as show
from tercet.evaluation.calibration import class_probabilities
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import predicted_classes
from tercet.evaluation.scoring import measured, metrics_of
from tercet.specs import Floats, Mode, TaskSpec

SEED = 11711
EXAMPLES = 5
MOVED = 0.1
"""A grade counts as changed from this share of its range on."""


@dataclass(frozen=True, slots=True)
class Example:
    """A row before and after: its texts, and the prediction (a class number or a grade)."""

    texts: tuple[str, ...]
    changed: tuple[str, ...]
    predicted: float
    predicted_after: float

    def to_json(self) -> dict[str, Any]:
        return {
            "texts": list(self.texts),
            "changed": list(self.changed),
            "predicted": round(self.predicted, 4),
            "predicted_after": round(self.predicted_after, 4),
        }


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The effect of a rule on a head.

    rows: dev rows that the rule changes; in a pair it changes the second sentence
    keeps: whether the meaning stays the same, so that predictions should not change
    metric, before, after: the task's main metric, on these rows and the same labels
    moved: share of rows whose class or labels changed, or whose grade moved by a tenth of its range
        or more
    examples: the rows whose predictions moved most; none where rows have several labels
    """

    rows: int
    keeps: bool
    metric: str
    before: float | None
    after: float | None
    moved: float | None
    examples: list[Example]

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "keeps_meaning": self.keeps,
            "metric": self.metric,
            "before": self.before,
            "after": self.after,
            "moved": self.moved,
            "examples": [example.to_json() for example in self.examples],
        }


@dataclass(frozen=True, slots=True)
class _Rows:
    """Columns of n texts before and after a change, and labels [n]."""

    texts: list[list[str]]
    changed: list[list[str]]
    labels: NDArray[Any]


def measure_changes(
    encoded: EncodedTexts, task: str, spec: TaskSpec, examples: Examples, limit: int
) -> dict[Mode, dict[str, ChangeResult]]:
    chosen = show.spread(len(examples), limit)
    changes = {rule: _change(examples, chosen, rule) for rule in PERTURBATIONS}
    results: dict[Mode, dict[str, ChangeResult]] = {}
    for mode in spec.predicting_modes:
        # The texts of all rules are encoded together: one long run is faster than many short ones.
        encoded.outputs(task, mode, _together(list(changes.values())))
        results[mode] = {
            rule.name: _measure_change(encoded, task, mode, spec, rule, rows)
            for rule, rows in changes.items()
        }
    return results


def _together(changes: Sequence[_Rows]) -> list[list[str]]:
    """The columns of all rows before and after the change, one after the other."""
    parts = [columns for rows in changes for columns in (rows.texts, rows.changed)]
    return [[text for part in column for text in part] for column in zip(*parts, strict=True)]


def _change(examples: Examples, chosen: NDArray[np.int64], rule: Change) -> _Rows:
    """The chosen rows that a rule changes; it changes the last text of each."""
    assert examples.labels is not None
    columns = examples.texts[:2]
    changed = {row: rule.change(columns[-1][row], SEED) for row in chosen.tolist()}
    kept_rows = [row for row, text in changed.items() if text is not None]
    texts = [[column[row] for row in kept_rows] for column in columns]
    return _Rows(
        texts=texts,
        changed=[*texts[:-1], [changed[row] or "" for row in kept_rows]],
        labels=examples.labels[kept_rows],
    )


def _measure_change(
    encoded: EncodedTexts, task: str, mode: Mode, spec: TaskSpec, rule: Change, rows: _Rows
) -> ChangeResult:
    outputs = [encoded.outputs(task, mode, columns) for columns in (rows.texts, rows.changed)]
    predictions = [encoded.model.engine.predict(task, mode, each) for each in outputs]
    thresholds = (encoded.model.info.thresholds or {}).get(task, {}).get(mode)
    found = [
        measured(spec, raw, predicted, thresholds)
        for raw, predicted in zip(outputs, predictions, strict=True)
    ]
    values = [metrics_of(spec, rows.labels, each)[spec.chosen_metric] for each in found]
    distances = _distances(spec, *predictions)
    before: NDArray[Any]
    after: NDArray[Any]
    if spec.multi_label:
        before, after = found
        moved = (before != after).any(axis=1)
    elif spec.range is None:
        before, after = map(predicted_classes, predictions)
        moved = before != after
    else:
        before, after = predictions
        moved = distances >= MOVED * (spec.range[1] - spec.range[0])
    # An example shows one class or grade.
    most = np.argsort(-distances, kind="stable")[: 0 if spec.multi_label else EXAMPLES]
    return ChangeResult(
        rows=len(rows.labels),
        keeps=rule.keeps,
        metric=spec.chosen_metric,
        before=values[0],
        after=values[1],
        moved=float(moved.mean()) if len(moved) else None,
        examples=[
            Example(
                texts=_row(rows.texts, place),
                changed=_row(rows.changed, place),
                predicted=float(before[place]),
                predicted_after=float(after[place]),
            )
            for place in most.tolist()
        ],
    )


def _distances(spec: TaskSpec, before: Floats, after: Floats) -> NDArray[np.float64]:
    """How far each prediction moved: the grade, or all probabilities together [n]."""
    if spec.range is not None:
        return np.abs(after.astype(np.float64) - before)
    moves = np.abs(class_probabilities(after) - class_probabilities(before))
    total: NDArray[np.float64] = moves.sum(axis=1)
    return total


def _row(columns: Sequence[Sequence[str]], place: int) -> tuple[str, ...]:
    return tuple(column[place] for column in columns)
