"""What a fit leaves: a model with its scores, recipe and report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tercet.evaluation.answers import Answers
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.simple_scores import SimpleScores
from tercet.files import read_json_object, write_text
from tercet.model import Model, load
from tercet.recipe import Recipe
from tercet.report.report import Report

SUMMARY = "summary.json"


@dataclass(frozen=True, slots=True)
class TaskScore:
    """What a fitted model reaches in a task's main metric, beside the simplest models.

    interval: 95 %
    majority, linear: the score of the most frequent class, and of a linear model on the encoder
    rows: how many it was measured on

    >>> result.scores["tickets"].metric, result.scores["tickets"].rows
    ('accuracy', 59)
    """

    metric: str
    value: float | None
    interval: tuple[float, float] | None
    majority: float | None
    linear: float | None
    rows: int

    @classmethod
    def of(cls, answers: Answers, baseline: SimpleScores | None) -> TaskScore:
        estimate = answers.metrics[answers.metric]
        return cls(
            metric=answers.metric,
            value=estimate.value,
            interval=estimate.interval,
            majority=None if baseline is None else baseline.majority,
            linear=None if baseline is None else baseline.linear,
            rows=len(answers.labels),
        )

    def __str__(self) -> str:
        value = "undefined" if self.value is None else f"{self.value:.3f}"
        simple = [] if self.linear is None else [f"linear model {self.linear:.3f}"]
        simple += [] if self.majority is None else [f"majority class {self.majority:.3f}"]
        return f"{self.metric} {value} ({', '.join(simple)})"

    def __repr__(self) -> str:
        interval = "" if self.interval is None else "{:.3f} to {:.3f}, ".format(*self.interval)
        return f"<TaskScore: {self}, {interval}{self.rows:,} rows>"

    @property
    def is_hurt(self) -> bool:
        """Whether the linear model on the untouched encoder is better, beyond chance."""
        return (
            self.linear is not None and self.interval is not None and self.linear > self.interval[1]
        )


class FitResult:
    """A fitted model, with its scores, recipe and report.

    folder: the run folder
    evaluation: what the report shows
    scores: by task
    data: the folder that the recipe's files are in

    >>> result.folder.name, list(result.scores), result.recipe.name
    ('tickets', ['tickets'], 'tickets')
    """

    def __init__(
        self,
        folder: Path,
        evaluation: Evaluation,
        scores: Mapping[str, TaskScore],
        data: Path,
        *,
        device: str | None = None,
    ) -> None:
        self.folder = folder
        self.evaluation = evaluation
        self.scores = dict(scores)
        self.data = data
        self._device = device

    @cached_property
    def model(self) -> Model:
        """The model, loaded when first used, on the device that it was fitted on."""
        return load(self.folder, device=self._device)

    @cached_property
    def recipe(self) -> Recipe:
        """What was trained; edit it and train it again with `tercet.train`."""
        return Recipe.load(self.folder / "recipe.toml")

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the model, one sentence each."""
        return list(read_json_object(self.folder / SUMMARY)["warnings"])

    @property
    def shortage(self) -> str | None:
        """What was left out for lack of time, and how many minutes would have sufficed; None if
        nothing was. It is the first of the warnings too.

        >>> result.shortage is None or "minutes" in result.shortage
        True
        """
        found = read_json_object(self.folder / SUMMARY).get("shortage")
        return None if found is None else str(found)

    def report(self, file: str | Path) -> Path:
        """Write the HTML report to a file; the run folder has one too.

        >>> result.report("tickets.html").name
        'tickets.html'
        """
        path = Path(file)
        write_text(path, Report([self.evaluation], run=self.folder).to_html())
        return path

    def __repr__(self) -> str:
        lines = [f"FitResult in {self.folder}"]
        lines += [f"  {name}: {score}" for name, score in self.scores.items()]
        return "\n".join([*lines, *(f"  Warning: {warning}" for warning in self.warnings)])
