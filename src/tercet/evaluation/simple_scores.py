"""The scores of the simplest models, and the file of a run folder that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tercet.errors import TercetError
from tercet.evaluation import presentation as show
from tercet.files import read_json_object, write_json

BASELINES_FILE = "baselines.json"


class SimpleScores(BaseModel):
    """The scores of the simplest models in a task's main metric.

    majority: of the most frequent class; None for grades, which have none
    linear: of a linear model on the untouched encoder; None where it was not measured
    rows: how many it was fitted on
    method: what it was measured on: `dev`, or `5-fold cross-validation`
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
        """The scores in a few words."""
        named = {"linear model": self.linear, "majority class": self.majority}
        return ", ".join(
            f"{name} {show.decimal(value)}" for name, value in named.items() if value is not None
        )

    def sentence(self, task: str) -> str:
        parts = [] if self.majority is None else [f"majority class {self.majority:.3f}"]
        parts += [] if self.linear is None else [f"linear model on the encoder {self.linear:.3f}"]
        return f"{task}: simple baselines by {self.metric}: {', '.join(parts)} ({self.method})."


Baselines = Mapping[str, SimpleScores]
"""By task."""


def write_baselines(run: Path, baselines: Baselines) -> None:
    """Write them into a run folder."""
    tasks = {name: scores.model_dump(exclude_none=True) for name, scores in baselines.items()}
    write_json(run / BASELINES_FILE, {"tasks": tasks})


def read_baselines(run: Path) -> dict[str, SimpleScores]:
    """Those that a run folder keeps; empty if it has none."""
    file = run / BASELINES_FILE
    if not file.is_file():
        return {}
    tasks: Any = read_json_object(file).get("tasks", {})
    try:
        return {name: SimpleScores.model_validate(content) for name, content in tasks.items()}
    except (ValidationError, AttributeError) as error:
        raise TercetError(f"{file}: does not hold baselines by task under `tasks`.") from error
