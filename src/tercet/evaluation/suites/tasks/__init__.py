"""The suite `tasks`: every task of a model on its dev data, in every mode, by every metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tercet.data.examples import BadRow, Examples, describe_skipped, read_examples
from tercet.data.files import unit_of
from tercet.data.layouts import Split, has_dev, split_files
from tercet.data.row_ids import read_row_ids
from tercet.errors import TercetError
from tercet.evaluation import presentation as show
from tercet.evaluation.answers import Answers, RowPlaces
from tercet.evaluation.contamination import Contamination
from tercet.evaluation.measure import measure_outputs
from tercet.evaluation.metrics import Estimate, Values
from tercet.evaluation.scaling import judged_rows
from tercet.evaluation.scoring import overall_of
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult, note_missing
from tercet.evaluation.suites.tasks.charts import task_charts
from tercet.evaluation.suites.tasks.details import class_table, confusion, mistake_rows
from tercet.evaluation.suites.tasks.findings import task_findings
from tercet.folders.model_card import Metrics
from tercet.specs import Mode, TaskSpec


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One task; the most accurate of its modes first."""

    skipped: list[BadRow]
    files: list[str]
    modes: dict[Mode, Answers]
    contamination: Contamination | None = None

    @property
    def best(self) -> Answers:
        """The answers of the most accurate mode."""
        return next(iter(self.modes.values()))

    @property
    def rows(self) -> int:
        return len(self.best.labels)

    def to_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "rows": self.rows,
            "skipped": [
                {"file": Path(row.file).name, "line": row.line, "reason": row.reason}
                for row in self.skipped
            ],
            "seen": None if self.contamination is None else self.contamination.to_json(),
            "metric": self.best.metric,
            "classes": self.best.classes,
            "modes": {mode: answers.to_json() for mode, answers in self.modes.items()},
        }


@dataclass(frozen=True, slots=True)
class TasksResult(SuiteResult):
    """The metrics of all tasks, and their mean: plain, and with (r + 1) / 2 for correlations."""

    tasks: dict[str, TaskResult]
    overall: Values
    missing: list[Missing] = field(default_factory=list)
    without_rows: list[str] = field(default_factory=list)
    """Names of tasks that have no rows of the split and were not measured."""
    split: Split = "dev"
    method: str = ""
    """How the rows were measured, in a sentence, if not on dev."""

    @classmethod
    def of_rows(
        cls, tasks: dict[str, TaskResult], specs: Mapping[str, TaskSpec], *, method: str
    ) -> TasksResult:
        """The result of tasks that were measured elsewhere."""
        return cls(tasks, overall_of(_values(tasks), specs), method=method)

    @property
    def _has_several(self) -> bool:
        """Whether there is more than one task, so that a mean says something."""
        return len(self.tasks) > 1 or bool(self.missing)

    @property
    def values(self) -> Metrics:
        """The metrics without intervals, as a model folder keeps them."""
        return _values(self.tasks)

    def to_json(self) -> dict[str, Any]:
        return {
            "split": self.split,
            "tasks": {name: task.to_json() for name, task in self.tasks.items()},
            "overall": self.overall,
        }

    def metrics(self) -> dict[str, Estimate]:
        """Models are compared by `answers` instead."""
        return {}

    def answers(self) -> list[Answers]:
        return [task.best for task in self.tasks.values()]

    def notes(self) -> list[str]:
        skipped = [
            f"{name}: {describe_skipped(task.skipped)}"
            for name, task in self.tasks.items()
            if task.skipped
        ]
        seen = [
            f"{name}: {task.contamination.describe()}"
            for name, task in self.tasks.items()
            if task.contamination is not None
        ]
        return [*skipped, *seen] + [
            f"{name}: has no {self.split} rows, so it is not measured."
            for name in self.without_rows
        ]

    def headlines(self) -> list[show.Headline]:
        return [
            show.Headline(each.task, f"{each.metric}, mode {each.mode}", each.metrics[each.metric])
            for each in self.answers()
        ]

    def findings(self) -> dict[str, str]:
        mean = self.overall["mean"] if self._has_several else None
        findings = {"Measured": self.method} if self.method else {}
        findings |= {} if mean is None else {"All tasks": f"The mean over the tasks is {mean:.3f}."}
        for name, task in self.tasks.items():
            if task.rows:
                findings[name] = " ".join(task_findings(list(task.modes.values())))
        return findings

    def tables(self) -> list[show.Table]:
        tables = self._metrics_table(), self._unseen_table(), self._calibration_table()
        return [table for table in tables if table.rows]

    def sections(self, suite: type[Suite]) -> list[show.Section]:
        if not self.tasks:
            return []
        parts = [
            show.Section(
                name,
                _describe_rows(task),
                matrices=[
                    show.ConfusionMatrix(f"Mode {each.mode}", each.classes, confusion(each))
                    for each in task.modes.values()
                    if each.classes and not each.several
                ],
                tables=[class_table(each) for each in task.modes.values() if each.classes],
                charts=task_charts(list(task.modes.values())),
            )
            for name, task in self.tasks.items()
        ]
        sections = [show.Section(suite.title, suite.intro, tables=self.tables(), parts=parts)]
        if all(answers.texts for answers in self.answers()):
            intro = (
                "The wrong predictions of each task's most accurate mode with the highest "
                "confidence, the grades that are furthest off, and the rows with the most wrong "
                "labels. Labels are people's, and some of them are mistakes too."
            )
            sections.append(show.Section("Mistakes", intro, tables=[self._mistakes_table()]))
        return sections

    def _answers(self) -> Iterator[tuple[str, Mode, Answers]]:
        for name, task in self.tasks.items():
            for mode, answers in task.modes.items():
                yield name, mode, answers

    def _metrics_table(self) -> show.Table:
        rows = []
        for name, mode, answers in self._answers():
            for metric, value in answers.metrics.items():
                marked = f"{metric}*" if metric == answers.metric else metric
                cells = [show.Cell(name), show.Cell(marked), *show.estimate_cells(value)]
                rows.append([*cells, show.Cell(mode), show.count(len(answers.labels))])
        for mean, score in self.overall.items() if self._has_several else ():
            empty = [show.Cell("")] * 3
            rows.append([show.Cell("overall"), show.Cell(mean), show.number(score), *empty])
        return show.Table(
            caption="Every metric of every mode; * marks the main metric of a task",
            columns=["Task", "Metric", "Value", show.INTERVAL, "Mode", "Rows"],
            rows=rows,
        )

    def _unseen_table(self) -> show.Table:
        """Of tasks some of whose rows were trained on."""
        rows = []
        for name, mode, answers in self._answers():
            found = self.tasks[name].contamination
            if found is None or answers.unseen is None or found.fresh.all():
                continue
            for metric, value in answers.unseen.items():
                cells = [
                    show.Cell(name),
                    show.Cell(metric),
                    show.number(answers.metrics[metric].value),
                ]
                rows.append(
                    [*cells, *show.estimate_cells(value), show.Cell(mode), show.count(found.rows)]
                )
        return show.Table(
            caption="Without rows that the model was trained on, or that these imply",
            columns=["Task", "Metric", "All rows", "Unseen rows", show.INTERVAL, "Mode", "Rows"],
            rows=rows,
        )

    def _calibration_table(self) -> show.Table:
        numeric = ["Calibration error", "Negative log-likelihood", "Temperature", "Shift"]
        rows = []
        for name, mode, answers in self._answers():
            if (result := answers.calibration) is not None:
                values = result.ece, result.nll, result.scaling.temperature, result.scaling.shift
                rows.append([show.Cell(name), show.Cell(mode), *map(show.number, values)])
        return show.Table(
            caption="Calibration of the probabilities: lower errors are better. A head's outputs "
            "are divided by the temperature; with two classes the shift is then added",
            columns=["Task", "Mode", *numeric],
            rows=rows,
        )

    def _mistakes_table(self) -> show.Table:
        """The worst mistakes of each task's most accurate mode."""
        return show.Table(
            caption="The worst mistakes of each task",
            columns=["Sentence", "Task", "Expected", "Predicted", "Row", "How wrong"],
            rows=show.interleave(mistake_rows(answers) for answers in self.answers()),
            filters=["Task", "Expected", "Predicted"],
        )


class Tasks(Suite):
    name = "tasks"
    title = "Tasks"
    description = "the model's own tasks on their dev data"
    needs_heads = True

    def run(self, context: Context) -> TasksResult:
        """Measure all tasks that predict on their dev files."""
        predicting = {name: spec for name, spec in context.model.tasks.items() if spec.predicts}
        if not predicting:
            raise TercetError("This model has no task to measure; it can only embed.")
        specs = {name: spec for name, spec in predicting.items() if _has(spec, context.split)}
        without_rows = [name for name in predicting if name not in specs]
        if not specs and context.split == "train":
            raise TercetError("No task of this model was trained on labelled rows.")
        if not specs:
            raise TercetError(
                f"Task `{without_rows[0]}` of this model has no dev rows to measure it on; set "
                "`data.dev` in its recipe to files or to a share of the training rows, or measure "
                "it on a labelled file."
            )
        results: dict[str, TaskResult] = {}
        missing: list[Missing] = []
        for name, spec in specs.items():
            with note_missing(missing, self.name, name):
                examples = read_examples(spec, context.split, context.data)
                results[name] = _measure(context, name, spec, examples)
        if missing:
            nothing: Values = {"mean": None, "mean-shifted": None}
            return TasksResult(results, nothing, missing, without_rows, context.split)
        overall = overall_of(_values(results), specs)
        return TasksResult(results, overall, [], without_rows, context.split)


def _has(spec: TaskSpec, split: Split) -> bool:
    """Whether a task has labelled rows of a split."""
    if split == "dev":
        return has_dev(spec.data)
    return spec.learns_labels and bool(split_files(spec.data, split))


def _values(tasks: dict[str, TaskResult]) -> Metrics:
    return {
        name: {
            mode: {metric: value.value for metric, value in answers.metrics.items()}
            for mode, answers in task.modes.items()
        }
        for name, task in tasks.items()
    }


def _measure(context: Context, name: str, spec: TaskSpec, examples: Examples) -> TaskResult:
    assert examples.labels is not None
    texts = tuple(column[: context.rows] for column in examples.texts)
    labels = examples.labels[: len(texts[0])]
    places = places_of(spec, examples, len(labels))
    found = Contamination.of(context.model, texts)
    scalings = (context.model.info.scalings or {}).get(name, {})
    thresholds = (context.model.info.thresholds or {}).get(name, {})
    modes: dict[Mode, Answers] = {}
    for mode in spec.predicting_modes:
        scaling, judged = scalings.get(mode), None
        if scaling is not None and context.split == "dev":
            judged = np.intersect1d(np.arange(len(labels)), judged_rows(spec, len(examples)))
        modes[mode] = measure_outputs(
            name,
            mode,
            spec,
            context.texts.outputs(name, mode, texts),
            labels,
            scaling=scaling,
            thresholds=thresholds.get(mode),
            judged=judged,
            texts=texts,
            places=places,
            found=found,
        )
    files = [path.name for path in examples.files]
    return TaskResult(list(examples.skipped), files, modes, found)


def places_of(spec: TaskSpec, examples: Examples, count: int) -> RowPlaces:
    """Where the first rows of a split come from."""
    return RowPlaces(
        files=[path.name for path in examples.files],
        units=[unit_of(path) for path in examples.files],
        sources=examples.sources[:count],
        lines=examples.lines[:count],
        ids=read_row_ids(examples, spec.data)[:count],
    )


def _describe_rows(task: TaskResult) -> str:
    skipped = f"; {len(task.skipped):,} more could not be used" if task.skipped else ""
    return f"{task.rows:,} rows of {', '.join(task.files)}{skipped}."
