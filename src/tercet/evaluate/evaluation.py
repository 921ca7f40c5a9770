"""All suites that were asked for, as one document."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import tercet
from tercet.data.examples import describe_skipped
from tercet.errors import TercetError
from tercet.evaluate.corpus import Corpus, Tell
from tercet.evaluate.geometry import evaluate_geometry
from tercet.evaluate.results import Missing, TasksResult
from tercet.evaluate.robustness import evaluate_robustness
from tercet.evaluate.sts import evaluate_sts
from tercet.evaluate.tasks import evaluate_tasks
from tercet.evaluate.transfer import evaluate_transfer
from tercet.model import Model
from tercet.specs import DataSpec

SCHEMA = 3
Suite = Literal["tasks", "sts", "transfer", "robustness", "geometry"]
SUITES: tuple[Suite, ...] = get_args(Suite)
PACKAGES = ("torch", "tokenizers", "numpy", "scipy", "scikit-learn")


class SuiteResult(Protocol):
    """What a suite found, and which files it missed."""

    @property
    def missing(self) -> list[Missing]: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a model can and cannot do, by suite.

    model: its name, encoder, recipe, width and tasks
    data: the name of the data folder
    suites: what each suite found, in their order
    left_out: suites that were asked for and need heads, where the model has none
    """

    model: dict[str, Any]
    data: str
    versions: dict[str, str]
    machine: dict[str, Any]
    seconds: float
    suites: Mapping[Suite, SuiteResult]
    left_out: Sequence[Suite] = ()

    @property
    def missing(self) -> list[Missing]:
        """The files that suites looked for in vain."""
        return [one for result in self.suites.values() for one in result.missing]

    @property
    def rows(self) -> dict[str, tuple[list[str], ...]]:
        """The text columns of the rows that each task was measured on; not part of the JSON."""
        tasks = self.suites.get("tasks")
        return tasks.texts if isinstance(tasks, TasksResult) else {}

    @property
    def notes(self) -> list[str]:
        """What a reader must know beside the figures, a sentence each."""
        notes = [f"{suite}: left out, since this model has no heads." for suite in self.left_out]
        tasks = self.suites.get("tasks")
        if isinstance(tasks, TasksResult):
            notes += [
                f"{name}: {describe_skipped(task.skipped)}"
                for name, task in tasks.tasks.items()
                if task.skipped
            ]
        return notes

    def to_json(self) -> dict[str, Any]:
        """The document of docs/evaluation.md."""
        return {
            "schema": SCHEMA,
            "model": self.model,
            "data": self.data,
            "versions": self.versions,
            "machine": self.machine,
            "seconds": round(self.seconds, 3),
            "suites": {name: result.to_json() for name, result in self.suites.items()},
            "missing": [one.to_json() for one in self.missing],
        }


def evaluate(
    model: Model,
    data_dir: Path,
    *,
    suites: Sequence[Suite] = SUITES,
    name: str | None = None,
    rows: int | None = None,
    leaking: DataSpec | None = None,
    progress: Tell | None = None,
) -> Evaluation:
    """Run suites on a model; each text is encoded once for all of them.

    suites: which; `tasks` and `robustness` need heads and are left out where there are none,
        unless nothing else is asked for
    name: what the model is called in the document; its encoder's name when left out
    rows: only so many of each task, for a quick look
    leaking: what a model that is set beside it was trained on, and STS sets are measured without
        too; that of its own tasks when left out
    progress: told what is being done, how much of it is done, and how much there is
    """
    asked = [suite for suite in SUITES if suite in suites]
    runnable = [suite for suite in asked if model.tasks or suite not in NEED_HEADS]
    if not runnable:
        raise TercetError("This model has no task to measure; it can only embed.")
    start = time.perf_counter()
    corpus = Corpus(model, progress)
    wishes = Wishes(rows, leaking)
    found = {suite: RUN[suite](corpus, data_dir, wishes) for suite in runnable}
    return Evaluation(
        model=describe(model, name or model.info.encoder),
        data=data_dir.resolve().name,
        versions={"tercet": tercet.__version__, **{name: version(name) for name in PACKAGES}},
        machine=machine(model),
        seconds=time.perf_counter() - start,
        suites=found,
        left_out=[suite for suite in asked if suite not in runnable],
    )


def describe(model: Model, name: str) -> dict[str, Any]:
    """What the document says of a model."""
    return {
        "name": name,
        "encoder": model.info.encoder,
        "recipe": model.info.recipe,
        "width": model.width,
        "tasks": list(model.tasks),
    }


def machine(model: Model) -> dict[str, Any]:
    """What the figures were made on, as far as it matters to them."""
    return {
        **model.engine.machine(),
        "processor": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


@dataclass(frozen=True, slots=True)
class Wishes:
    """What `evaluate` was asked for that only some suites mind."""

    rows: int | None
    leaking: DataSpec | None


def _tasks(corpus: Corpus, data_dir: Path, wishes: Wishes) -> SuiteResult:
    return evaluate_tasks(corpus.model, data_dir, rows=wishes.rows, corpus=corpus)


def _sts(corpus: Corpus, data_dir: Path, wishes: Wishes) -> SuiteResult:
    return evaluate_sts(corpus, data_dir, leaking=wishes.leaking)


def _robustness(corpus: Corpus, data_dir: Path, wishes: Wishes) -> SuiteResult:
    return evaluate_robustness(corpus, data_dir, rows=wishes.rows)


NEED_HEADS = ("tasks", "robustness")
RUN: dict[Suite, Callable[[Corpus, Path, Wishes], SuiteResult]] = {
    "tasks": _tasks,
    "sts": _sts,
    "transfer": lambda corpus, data_dir, _: evaluate_transfer(corpus, data_dir),
    "robustness": _robustness,
    "geometry": lambda corpus, data_dir, _: evaluate_geometry(corpus, data_dir),
}
