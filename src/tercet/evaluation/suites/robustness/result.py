"""What the suite `robustness` measured, as tables and sentences of a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from tercet.evaluation import presentation as show
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.suite import Missing, SuiteResult
from tercet.evaluation.suites.robustness.changes import ChangeResult
from tercet.evaluation.suites.robustness.word_order import KindResult, OrderResult
from tercet.specs import Mode

HEURISTICS = {
    "lexical_overlap": "All words",
    "subsequence": "A run of words",
    "constituent": "A whole phrase",
}
"""What the names of HANS's heuristics mean."""


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


def _right(kind: KindResult | None) -> show.Cell:
    if kind is None or kind.right is None:
        return show.Cell("")
    text = f"{kind.right:.0%} ({kind.pairs:,})"
    return show.Cell(text, kind.right, full=show.decimal(kind.right, 4))
