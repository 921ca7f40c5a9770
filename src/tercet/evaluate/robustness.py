"""The suite `robustness`: word order, and sentences changed by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import Examples, read_examples
from tercet.data.files import MissingFileError
from tercet.evaluate.calibration import class_probabilities
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.metrics import predicted_classes
from tercet.evaluate.perturb import PERTURBATIONS, Perturbation
from tercet.evaluate.results import Missing, predicting_modes
from tercet.evaluate.tasks import figures_of, measured
from tercet.evaluate.word_order import (
    ORDER_SETS,
    OrderResult,
    compares_pairs,
    measure_order,
    read_order_set,
    spread,
)
from tercet.infer.engine import Floats
from tercet.specs import Mode, TaskSpec

SEED = 11711
PERTURBED = 1_000
"""Dev rows of a task that are changed."""
EXAMPLES = 5
MOVED = 0.1
"""A grade counts as changed from this share of its range on."""


@dataclass(frozen=True, slots=True)
class Example:
    """A row before and after: its texts, and what was predicted (a class number or a grade)."""

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
    """What a rule does to a head.

    rows: dev rows that the rule could change; of pairs it changes the second sentence
    keeps: whether the meaning stays, so that predictions should
    metric, before, after: the figure that stands for the task, on these rows and the same labels
    moved: share of rows with another class, or whose grade moved by a tenth of its range or more
    examples: the rows that moved most
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
class RobustnessResult:
    """Word order: of each set, task and mode. Changes: of each task, mode and rule."""

    word_order: dict[str, dict[str, dict[Mode, OrderResult]]]
    changes: dict[str, dict[Mode, dict[str, ChangeResult]]]
    missing: list[Missing]

    def to_json(self) -> dict[str, Any]:
        return {
            "word_order": {
                name: {
                    task: {mode: found.to_json() for mode, found in modes.items()}
                    for task, modes in tasks.items()
                }
                for name, tasks in self.word_order.items()
            },
            "changes": {
                task: {
                    mode: {rule: found.to_json() for rule, found in rules.items()}
                    for mode, rules in modes.items()
                }
                for task, modes in self.changes.items()
            },
        }


def evaluate_robustness(
    corpus: Corpus, data_dir: Path, *, rows: int | None = None
) -> RobustnessResult:
    """Run what the model has heads for; `rows` is how many of each set and task, at most."""
    missing: list[Missing] = []
    word_order: dict[str, dict[str, dict[Mode, OrderResult]]] = {}
    comparing = {name: spec for name, spec in corpus.model.tasks.items() if compares_pairs(spec)}
    for name in ORDER_SETS if comparing else ():
        try:
            pairs = read_order_set(name, data_dir, rows=rows)
        except MissingFileError as error:
            missing.append(Missing("robustness", name.upper(), error.file))
            continue
        word_order[name.upper()] = {
            task: measure_order(corpus, task, spec, pairs) for task, spec in comparing.items()
        }
    changes: dict[str, dict[Mode, dict[str, ChangeResult]]] = {}
    for task, spec in corpus.model.tasks.items():
        try:
            examples = read_examples(spec, "dev", data_dir)
        except MissingFileError as error:
            missing.append(Missing("robustness", task, error.file))
            continue
        changes[task] = _measure_changes(corpus, task, spec, examples, rows or PERTURBED)
    return RobustnessResult(word_order, changes, missing)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Columns of n texts as they are and as changed, and labels [n]."""

    texts: list[list[str]]
    changed: list[list[str]]
    labels: NDArray[Any]


def _measure_changes(
    corpus: Corpus, task: str, spec: TaskSpec, examples: Examples, limit: int
) -> dict[Mode, dict[str, ChangeResult]]:
    chosen = spread(len(examples), min(limit, PERTURBED))
    changes = {rule: _change(examples, chosen, rule) for rule in PERTURBATIONS}
    results: dict[Mode, dict[str, ChangeResult]] = {}
    for mode in predicting_modes(spec):
        # All rules' texts are encoded at once: one long run is faster than many short ones.
        corpus.outputs(task, mode, _together(list(changes.values())))
        results[mode] = {
            rule.name: _measure_change(corpus, task, mode, spec, rule, rows)
            for rule, rows in changes.items()
        }
    return results


def _together(changes: Sequence[_Rows]) -> list[list[str]]:
    """The columns of all rows, as they are and as changed, one after the other."""
    parts = [columns for rows in changes for columns in (rows.texts, rows.changed)]
    return [[text for part in column for text in part] for column in zip(*parts, strict=True)]


def _change(examples: Examples, chosen: NDArray[np.int64], rule: Perturbation) -> _Rows:
    """The chosen rows that a rule changes; it is applied to the last text of each."""
    assert examples.labels is not None
    columns = examples.texts[:2]
    changed = {row: rule.change(columns[-1][row], SEED) for row in chosen.tolist()}
    kept = [row for row, text in changed.items() if text is not None]
    texts = [[column[row] for row in kept] for column in columns]
    return _Rows(
        texts=texts,
        changed=[*texts[:-1], [changed[row] or "" for row in kept]],
        labels=examples.labels[kept],
    )


def _measure_change(
    corpus: Corpus, task: str, mode: Mode, spec: TaskSpec, rule: Perturbation, rows: _Rows
) -> ChangeResult:
    outputs = [corpus.outputs(task, mode, columns) for columns in (rows.texts, rows.changed)]
    before, after = (corpus.model.engine.predict(task, mode, one) for one in outputs)
    figures = [
        figures_of(spec, rows.labels, measured(spec, one, said))[spec.chosen_metric]
        for one, said in zip(outputs, (before, after), strict=True)
    ]
    moves = _moves(spec, before, after)
    said, said_after = _said(spec, before), _said(spec, after)
    if spec.range is None:
        moved = said != said_after
    else:
        moved = moves >= MOVED * (spec.range[1] - spec.range[0])
    most = np.argsort(-moves, kind="stable")[:EXAMPLES]
    return ChangeResult(
        rows=len(rows.labels),
        keeps=rule.keeps,
        metric=spec.chosen_metric,
        before=figures[0],
        after=figures[1],
        moved=float(moved.mean()) if len(moved) else None,
        examples=[
            Example(
                texts=_row(rows.texts, place),
                changed=_row(rows.changed, place),
                predicted=float(said[place]),
                predicted_after=float(said_after[place]),
            )
            for place in most.tolist()
        ],
    )


def _moves(spec: TaskSpec, before: Floats, after: Floats) -> NDArray[np.float64]:
    """How far each prediction went: of grades, or of all probabilities together [n]."""
    if spec.range is not None:
        return np.abs(after.astype(np.float64) - before)
    gone = np.abs(class_probabilities(after) - class_probabilities(before))
    moves: NDArray[np.float64] = gone.sum(axis=1)
    return moves


def _said(spec: TaskSpec, predicted: Floats) -> NDArray[Any]:
    return predicted if spec.range is not None else predicted_classes(predicted)


def _row(columns: Sequence[Sequence[str]], place: int) -> tuple[str, ...]:
    return tuple(column[place] for column in columns)
