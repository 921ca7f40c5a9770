"""Simple baselines of a run, beside the model's scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tercet.errors import TercetError
from tercet.evaluation import presentation as show
from tercet.evaluation.answers import Answers
from tercet.files import read_json_object

BASELINES_FILE = "baselines.json"


class Baseline(BaseModel):
    """The scores of simple baselines on one task.

    metric: the task's main metric
    majority: of the most frequent class, or the mean grade
    linear: of a linear model on the untouched encoder
    method: how they were measured, such as `dev` or `5-fold cross-validation`
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    metric: str
    majority: float | None = None
    linear: float | None = None
    rows: int | None = None
    method: str = ""

    @property
    def best(self) -> float | None:
        values = [value for value in (self.majority, self.linear) if value is not None]
        return max(values, default=None)

    @property
    def note(self) -> str:
        """The baselines in a few words."""
        named = {"linear model": self.linear, "majority class": self.majority}
        return ", ".join(
            f"{name} {show.decimal(value)}" for name, value in named.items() if value is not None
        )


Baselines = Mapping[str, Baseline]
"""By task."""


def read_baselines(run: Path) -> dict[str, Baseline]:
    """The baselines that a run folder keeps; empty if it has none."""
    file = run / BASELINES_FILE
    if not file.is_file():
        return {}
    tasks: Any = read_json_object(file).get("tasks", {})
    try:
        return {name: Baseline.model_validate(content) for name, content in tasks.items()}
    except (ValidationError, AttributeError) as error:
        raise TercetError(f"{file}: does not hold baselines by task under `tasks`.") from error


def baselines_table(baselines: Baselines, answers: Iterable[Answers]) -> show.Table:
    """The model's score beside those of the baselines, of every task that has them."""
    rows = []
    for each in answers:
        baseline = baselines.get(each.task)
        if baseline is None or baseline.metric not in each.metrics:
            continue
        score = each.metrics[baseline.metric].value
        rows.append(
            [
                show.Cell(each.task),
                show.Cell(baseline.metric),
                show.number(score),
                _measured(baseline.majority),
                _measured(baseline.linear),
                _difference(score, baseline.best),
                show.Cell(_how(baseline)),
            ]
        )
    return show.Table(
        caption="This model beside the majority class and a linear model on the untouched encoder; "
        "the difference is from the better of the two",
        columns=[
            "Task", "Metric", "This model", "Majority class", "Linear model", "Difference",
            "Baselines measured on",
        ],
        rows=rows,
    )  # fmt: skip


def _measured(value: float | None) -> show.Cell:
    return show.Cell("") if value is None else show.number(value)


def _difference(score: float | None, best: float | None) -> show.Cell:
    if score is None or best is None:
        return show.Cell("")
    value = score - best
    return show.Cell(f"{value:+.3f}", value)


def _how(baseline: Baseline) -> str:
    rows = [] if baseline.rows is None else [f"{baseline.rows:,} rows"]
    return ", ".join([*rows, *([baseline.method] if baseline.method else [])])
