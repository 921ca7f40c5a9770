"""The suite `robustness`: word order, and sentences changed by rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.changes import PERTURBATIONS
from tercet.data.changes.record import Change
from tercet.data.examples import Examples, read_examples
from tercet.data.layouts import has_dev
from tercet.evaluation import presentation as show
from tercet.evaluation.calibration import class_probabilities
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate, predicted_classes
from tercet.evaluation.scoring import measured, metrics_of
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult, note_missing
from tercet.evaluation.suites.robustness.word_order import (
    ORDER_SETS,
    KindResult,
    OrderResult,
    change_sentences,
    compares_pairs,
    measure_order,
    read_order_set,
)
from tercet.specs import Floats, Mode, TaskSpec

SEED = 11711
PERTURBED = 1_000
"""Dev rows of a task that are changed."""
EXAMPLES = 5
MOVED = 0.1
"""A grade counts as changed from this share of its range on."""
HEURISTICS = {
    "lexical_overlap": "All words",
    "subsequence": "A run of words",
    "constituent": "A whole phrase",
}
"""What the names of HANS's heuristics mean."""
CHANGED = "changed sentences"
"""The set of pairs that are made by rule of a task's own dev sentences."""


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
class RobustnessResult(SuiteResult):
    """word_order: by set, task and mode; changes: by task, mode and rule; classes: by task"""

    word_order: dict[str, dict[str, dict[Mode, OrderResult]]]
    changes: dict[str, dict[Mode, dict[str, ChangeResult]]]
    classes: dict[str, list[str] | None] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "word_order": asdict(self)["word_order"],
            "changes": {
                task: {
                    mode: {rule: result.to_json() for rule, result in rules.items()}
                    for mode, rules in modes.items()
                }
                for task, modes in self.changes.items()
            },
        }

    def metrics(self) -> dict[str, Estimate]:
        return {
            f"{name}, {task}, mode {mode}: share fooled": Estimate(result.fooled)
            for name, task, mode, result in self._order_results()
        }

    def tables(self) -> list[show.Table]:
        order = [self._order_table(), self._heuristics_table(), *self._kinds_tables()]
        tables = [*order, self._changes_table()]
        return [table for table in (*tables, self._examples_table()) if table.rows]

    def findings(self) -> dict[str, str]:
        findings = {}
        if order := [*self._order_sentences()]:
            findings["Word order"] = " ".join(order)
        # The first mode of a task is the most accurate.
        firsts = {task: next(iter(modes.values())) for task, modes in self.changes.items()}
        moved = [
            f"{rules['typos'].moved:.0%} of {task}"
            for task, rules in firsts.items()
            if "typos" in rules and rules["typos"].moved is not None
        ]
        if moved:
            changed = ", ".join(moved)
            findings["Typing errors"] = f"They change predictions that should stay: {changed}."
        return findings

    def _order_results(self) -> Iterator[tuple[str, str, Mode, OrderResult]]:
        for name, tasks in self.word_order.items():
            for task, modes in tasks.items():
                for mode, result in modes.items():
                    yield name, task, mode, result

    def _change_results(self) -> Iterator[tuple[str, Mode, str, ChangeResult]]:
        for task, modes in self.changes.items():
            for mode, rules in modes.items():
                for rule, result in rules.items():
                    yield task, mode, rule, result

    def _order_sentences(self) -> Iterator[str]:
        """The heads that word order fools most and least."""
        for name in self.word_order:
            fooled = {
                f"{task} ({mode})": result.fooled
                for of_set, task, mode, result in self._order_results()
                if of_set == name and result.fooled is not None
            }
            if not fooled:
                continue
            most, least = (pick(fooled, key=fooled.__getitem__) for pick in (max, min))
            rest = "" if most == least else f", {least} {fooled[least]:.0%}"
            yield (
                f"Among the pairs of {name} with different meanings, {most} takes "
                f"{fooled[most]:.0%} for the same{rest}."
            )

    def _order_table(self) -> show.Table:
        numeric = ["Fooled", "High overlap", "Pairs"]
        return show.Table(
            caption="Fooled: the share of pairs with different meanings that are predicted to mean "
            "the same; high overlap: only those that share most of their words",
            columns=["Set", "Task", "Mode", "Accuracy", show.INTERVAL, *numeric],
            rows=[
                [
                    *map(show.Cell, (name, task, mode)),
                    *show.estimate_cells(result.accuracy),
                    show.share(result.fooled),
                    show.share(result.fooled_high_overlap),
                    show.count(result.pairs),
                ]
                for name, task, mode, result in self._order_results()
            ],
        )

    def _heuristics_table(self) -> show.Table:
        """The share fooled by each heuristic, for sets whose pairs are made by heuristics."""
        results = [each for each in self._order_results() if each[3].heuristics]
        kinds = list(dict.fromkeys(kind for *_, result in results for kind in result.heuristics))
        names = [HEURISTICS.get(kind, kind) for kind in kinds]
        return show.Table(
            caption="Fooled, by what the sentences of a pair share",
            columns=["Set", "Task", "Mode", *names],
            rows=[
                [
                    *map(show.Cell, each),
                    *(show.share(result.heuristics.get(kind)) for kind in kinds),
                ]
                for *each, result in results
            ],
        )

    def _kinds_tables(self) -> Iterator[show.Table]:
        """The share of right predictions by kind of change, a table for each set that has kinds."""
        for name in self.word_order:
            results = [each for each in self._order_results() if each[0] == name and each[3].kinds]
            kinds = list(dict.fromkeys(kind for *_, found in results for kind in found.kinds))
            yield show.Table(
                caption=f"Right predictions of {name}, by kind of change (number of pairs)",
                columns=["Task", "Mode", *kinds],
                rows=[
                    [*map(show.Cell, each), *(_right(found.kinds.get(kind)) for kind in kinds)]
                    for _, *each, found in results
                ],
            )

    def _changes_table(self) -> show.Table:
        numeric = ["Before", "After", "Moved", "Rows"]
        rows = []
        for task, mode, rule, result in self._change_results():
            meaning = "same" if result.keeps else "changed"
            values = [
                show.number(result.before),
                show.number(result.after),
                show.share(result.moved),
            ]
            names = map(show.Cell, (rule, meaning, task, mode, result.metric))
            rows.append([*names, *values, show.count(result.rows)])
        return show.Table(
            caption="Sentences changed by rule: the metric before and after, against the same "
            "labels, and the share of predictions that moved",
            columns=["Rule", "Meaning", "Task", "Mode", "Metric", *numeric],
            rows=rows,
        )

    def _examples_table(self) -> show.Table:
        groups = []
        for task, mode, rule, result in self._change_results():
            rows = []
            for example in result.examples:
                before, after = (
                    show.Cell(self._name(task, value))
                    for value in (example.predicted, example.predicted_after)
                )
                if before != after:
                    texts = [show.sentence_cell(example.texts), show.sentence_cell(example.changed)]
                    rows.append(
                        [*texts, show.Cell(rule), show.Cell(task), before, after, show.Cell(mode)]
                    )
            groups.append(rows)
        return show.Table(
            caption="Changed sentences whose predictions moved most",
            columns=["Sentence", "Changed to", "Rule", "Task", "Before", "After", "Mode"],
            rows=show.interleave(groups),
            filters=["Task", "Rule"],
        )

    def _name(self, task: str, value: float) -> str:
        classes = self.classes.get(task)
        return f"{value:.2f}" if classes is None else classes[int(value)]


class Robustness(Suite):
    name = "robustness"
    title = "Robustness"
    description = "word order (HANS, PAWS), changes by rule: words, names, negation, typing errors"
    intro = (
        "Pairs of the same words in another order, rows of PAWS that no recipe trains on, pairs of "
        "a dev sentence and itself changed by rule, and changed dev rows. Where a rule "
        "keeps the meaning, predictions should not change. Where it changes the meaning, a pair "
        "that meant the same no longer does, and a pair that did not still does not."
    )
    needs_heads = True

    def run(self, context: Context) -> RobustnessResult:
        """Measure the heads that the model has; `context.rows` limits each set and task."""
        tasks, limit = context.model.tasks, min(context.rows or PERTURBED, PERTURBED)
        missing: list[Missing] = []
        word_order: dict[str, dict[str, dict[Mode, OrderResult]]] = {}
        comparing = {name: spec for name, spec in tasks.items() if compares_pairs(spec)}
        for name in ORDER_SETS if comparing else ():
            with note_missing(missing, self.name, name.upper()):
                pairs = read_order_set(name, context.data, rows=context.rows)
                word_order[name.upper()] = {
                    task: measure_order(context.texts, task, spec, pairs)
                    for task, spec in comparing.items()
                }
        scored = {name: spec for name, spec in comparing.items() if has_dev(spec.data)}
        for task, spec in scored.items():
            with note_missing(missing, self.name, f"{CHANGED} of {task}"):
                texts = read_examples(spec, "dev", context.data).texts[0]
                pairs = change_sentences(texts, rows=context.rows)
                found = measure_order(context.texts, task, spec, pairs)
                word_order.setdefault(CHANGED, {})[task] = found
        changes: dict[str, dict[Mode, dict[str, ChangeResult]]] = {}
        for task, spec in tasks.items():
            if not has_dev(spec.data):
                continue
            with note_missing(missing, self.name, task):
                examples = read_examples(spec, "dev", context.data)
                changes[task] = _measure_changes(context.texts, task, spec, examples, limit)
        classes = {task: spec.labels for task, spec in tasks.items()}
        return RobustnessResult(word_order, changes, classes, missing)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Columns of n texts before and after a change, and labels [n]."""

    texts: list[list[str]]
    changed: list[list[str]]
    labels: NDArray[Any]


def _measure_changes(
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


def _right(kind: KindResult | None) -> show.Cell:
    if kind is None or kind.right is None:
        return show.Cell("")
    text = f"{kind.right:.0%} ({kind.pairs:,})"
    return show.Cell(text, kind.right, full=show.decimal(kind.right, 4))


def _row(columns: Sequence[Sequence[str]], place: int) -> tuple[str, ...]:
    return tuple(column[place] for column in columns)
