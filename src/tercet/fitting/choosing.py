"""Candidates judged by cross-validation: each row by a model that was not trained on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import Examples
from tercet.data.labels import Labels
from tercet.data.split import fold_numbers
from tercet.errors import ArgumentError
from tercet.evaluation.answers import Answers
from tercet.evaluation.contamination import Contamination
from tercet.evaluation.measure import measure_outputs
from tercet.evaluation.scaling import fit_decisions
from tercet.evaluation.scoring import best_mode
from tercet.evaluation.suites.tasks import places_of
from tercet.fitting.following import Joined
from tercet.fitting.planning import BATCH, CONTRAST
from tercet.fitting.trial import Rows, Trial
from tercet.specs import Floats, Scaling, TaskSpec
from tercet.training.loop import Limit

PRIOR_GAIN, PRIOR_SPREAD = 0.05, 0.05
"""What tuning usually gains, and how much that varies: a few rows cannot show it, and must not deny
it by chance. With more rows, what they show counts."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a candidate predicts for all rows of the tasks, each by a model that did not see it."""

    tasks: Mapping[str, TaskSpec]
    outputs: Mapping[str, Floats]
    labels: Mapping[str, Labels]

    def answers(
        self, name: str, examples: Examples, *, found: Contamination | None = None
    ) -> Answers:
        """The predictions of a task, calibrated, with metrics and intervals.

        found: which rows the encoder was trained on before, where that is known
        """
        scaling, thresholds = self.decisions(name)
        task = self.tasks[name]
        return measure_outputs(
            name,
            best_mode(task),
            task,
            self.outputs[name],
            self.labels[name],
            scaling=scaling,
            thresholds=thresholds,
            texts=examples.texts,
            places=places_of(task, examples, len(examples)),
            found=found,
        )

    def decisions(self, name: str) -> tuple[Scaling | None, list[float] | None]:
        """The scaling and the thresholds that fit a task's rows."""
        task, mode = self.tasks[name], best_mode(self.tasks[name])
        if task.labels is None:
            return None, None
        scalings, thresholds = fit_decisions({mode: self.outputs[name]}, self.labels[name], task)
        return scalings[mode], thresholds.get(mode)

    def score(self, name: str) -> float:
        """The task's main metric, with the scaling and the thresholds that the model would get; an
        undefined one counts as 0."""
        scaling, thresholds = self.decisions(name)
        answers = measure_outputs(
            name, best_mode(self.tasks[name]), self.tasks[name], self.outputs[name],
            self.labels[name], scaling=scaling, thresholds=thresholds,
        )  # fmt: skip
        return answers.metrics[answers.metric].value or 0.0

    def right(self, name: str) -> NDArray[np.float64]:
        """How right each row is [n]: 0 to 1 for classes and labels, less the error for grades."""
        task, mode = self.tasks[name], best_mode(self.tasks[name])
        predicted, labels = task.predict(mode, self.outputs[name]), self.labels[name]
        if task.labels is None:
            assert task.range is not None
            errors = np.abs(predicted - labels) / (task.range[1] - task.range[0])
            return np.asarray(1.0 - errors, np.float64)
        if task.multi_label:
            return np.asarray(((predicted > 0.5) == (labels > 0)).mean(axis=1), np.float64)
        classes = predicted.argmax(axis=1) if predicted.ndim == 2 else predicted > 0.5
        return np.asarray(classes == labels, np.float64)


class Folds:
    """Rows dealt out for cross-validation; equal texts, pairs that share one and groups stay
    together."""

    def __init__(
        self,
        examples: Mapping[str, Examples],
        *,
        folds: int,
        groups: Mapping[str, Sequence[str | None]],
        seed: int,
    ) -> None:
        self.count = folds
        self.examples = examples
        self._numbers = {
            name: fold_numbers(
                each.texts, each.labels, folds=folds, groups=groups.get(name), seed=seed
            )
            for name, each in examples.items()
        }
        for name, numbers in self._numbers.items():
            if len(np.unique(numbers)) < 2:
                raise ArgumentError(
                    f"{examples[name].files[0]}: all rows have the same text or the same group, so "
                    "that none can be kept from training to measure on; add other rows, or give "
                    "rows to measure on with `dev`.",
                    "dev",
                )

    def judge(self, trial: Trial, following: Joined, *, limit: Limit | None = None) -> Judged:
        """What a recipe gives for every row."""
        tasks = {name: trial.recipe.tasks[name] for name in self.examples}
        outputs = {
            name: np.zeros((len(self._numbers[name]), task.outputs(best_mode(task))), np.float32)
            for name, task in tasks.items()
        }
        for fold in range(self.count):
            following.note = f"fold {fold + 1} of {self.count}"
            rows = {name: self._rows(name, fold, held_out=False) for name in trial.tables}
            trial.train(rows, listener=following, limit=limit)
            for name, task in tasks.items():
                others = self._rows(name, fold, held_out=True)
                outputs[name][others] = trial.outputs(name, best_mode(task), others)
        labels = {n: each.labels for n, each in self.examples.items() if each.labels is not None}
        return Judged(tasks, outputs, labels)

    def batch_seconds(self, trial: Trial) -> float:
        """How long the encoder as it is takes for the rows of a batch, of which those that a fold
        holds out may be less than one."""
        paces = []
        for fold in range(self.count):
            seconds, batches = 0.0, 0
            for name, numbers in self._numbers.items():
                share = len(others := self._rows(name, fold, held_out=True)) / len(numbers)
                mode = best_mode(trial.recipe.tasks[name])
                seconds += share * trial.encoding_seconds(name, mode)
                batches += -(-len(others) // BATCH)
            if batches:
                paces.append(seconds / batches)
        return min(paces)

    def _rows(self, name: str, fold: int, *, held_out: bool) -> Rows:
        numbers = self._numbers[name.removesuffix(CONTRAST)]
        return np.flatnonzero((numbers == fold) == held_out)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both candidates on the same folds."""

    tuned: Judged
    linear: Judged

    @property
    def gain(self) -> float:
        """By how much the tuned candidate is better, mean over the tasks."""
        return float(
            np.mean([self.tuned.score(n) - self.linear.score(n) for n in self.tuned.tasks])
        )

    def differences(self, name: str) -> NDArray[np.float64]:
        """By how much each row of a task is more right [n]."""
        return self.tuned.right(name) - self.linear.right(name)


def prefers_tuned(comparisons: Sequence[Comparison]) -> bool:
    """Whether the tuned candidate is likely to be better, by the rows and by what is usual.

    comparisons: on the same rows, each with other folds
    """
    tasks = comparisons[0].tuned.tasks
    variance = 0.0
    for name in tasks:
        differences = np.mean([each.differences(name) for each in comparisons], axis=0)
        variance += float(differences.var()) / len(differences) / len(tasks) ** 2
    gain = fmean(each.gain for each in comparisons)
    if variance == 0.0:
        return gain >= 0.0
    return gain / variance + PRIOR_GAIN / PRIOR_SPREAD**2 > 0.0


def typical(comparisons: Sequence[Comparison]) -> Comparison:
    """The comparison whose gain is the median."""
    return sorted(comparisons, key=lambda each: each.gain)[len(comparisons) // 2]
