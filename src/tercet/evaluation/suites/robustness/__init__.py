"""The suite `robustness`: word order, and sentences changed by rule."""

from __future__ import annotations

from tercet.data.examples import read_examples
from tercet.data.layouts import has_dev
from tercet.evaluation.suite import Context, Missing, Suite, note_missing
from tercet.evaluation.suites.robustness.changes import ChangeResult, Example, measure_changes
from tercet.evaluation.suites.robustness.result import RobustnessResult
from tercet.evaluation.suites.robustness.word_order import (
    ORDER_SETS,
    OrderResult,
    change_sentences,
    compares_pairs,
    measure_order,
    read_order_set,
)
from tercet.specs import Mode

__all__ = ["PERTURBED", "ChangeResult", "Example", "Robustness", "RobustnessResult"]

PERTURBED = 1_000
"""Dev rows of a task that are changed."""
CHANGED = "changed sentences"
"""The set of pairs that are made by rule of a task's own dev sentences."""


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
                changes[task] = measure_changes(context.texts, task, spec, examples, limit)
        classes = {task: spec.labels for task, spec in tasks.items()}
        return RobustnessResult(word_order, changes, classes, missing)
