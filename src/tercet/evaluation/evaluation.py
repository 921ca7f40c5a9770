"""Suites run on a model."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tercet
from tercet.data.layouts import Split
from tercet.errors import ArgumentError, TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.suite import Context, Missing, SuiteResult
from tercet.evaluation.suites import SUITES
from tercet.model import Model
from tercet.progress import Phases, silent_phases

SCHEMA = 3
PACKAGES = ("torch", "tokenizers", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """The results of a model, by suite.

    model: its name, encoder, recipe, width and tasks
    data: the name of the data folder
    left_out: requested suites that do not fit the model, with what it lacks
    long: what was truncated or read in windows, one sentence for texts and one for pairs
    """

    model: dict[str, Any]
    data: str
    versions: dict[str, str]
    machine: dict[str, Any]
    seconds: float
    suites: Mapping[str, SuiteResult]
    left_out: Mapping[str, str] = field(default_factory=dict)
    long: Sequence[str] = ()

    @property
    def name(self) -> str:
        return str(self.model["name"])

    @property
    def missing(self) -> list[Missing]:
        """The files that suites did not find."""
        return [missing for result in self.suites.values() for missing in result.missing]

    @property
    def notes(self) -> list[str]:
        """What a reader must know, one sentence each."""
        notes = [
            f"{suite}: left out, since this model has no {lacking}."
            for suite, lacking in self.left_out.items()
        ]
        notes += self.long
        return notes + [note for result in self.suites.values() for note in result.notes()]

    def __repr__(self) -> str:
        """The main metrics, a line each."""
        headlines = [each for result in self.suites.values() for each in result.headlines()]
        lines = [
            f"  {each.subject}: {each.metric} {_shown(each.estimate)}" for each in headlines
        ] + [f"  {missing.suite}: {missing.file} is missing" for missing in self.missing]
        return "\n".join([f"Evaluation of {self.name} on {self.data}", *lines])

    def to_json(self) -> dict[str, Any]:
        """The same as a document that JSON can hold: what `tercet evaluate --json` writes.

        >>> measured.to_json()["model"]["name"]
        'tercet/small'
        """
        return {
            "schema": SCHEMA,
            "model": self.model,
            "data": self.data,
            "versions": self.versions,
            "machine": self.machine,
            "seconds": round(self.seconds, 3),
            "long": list(self.long),
            "suites": {name: result.to_json() for name, result in self.suites.items()},
            "missing": [asdict(missing) for missing in self.missing],
        }


def _shown(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined"
    interval = estimate.interval
    bounds = "" if interval is None else f" (95 %: {interval[0]:.3f} to {interval[1]:.3f})"
    return f"{estimate.value:.3f}{bounds}"


def evaluate(
    model: Model,
    data_dir: Path,
    *,
    suites: Sequence[str] | None = None,
    name: str | None = None,
    rows: int | None = None,
    split: Split = "dev",
    compared: Sequence[Model] = (),
    phases: Phases = silent_phases,
) -> Evaluation:
    """Run suites on a model; each text is encoded once for all of them.

    suites: names; default: all. Suites that do not fit the model are left out, such as those that
        need heads, unless no other is requested
    name: the model's name in the document; default: `model.name`
    rows: at most so many rows of each task, for a quick look
    split: `train` measures tasks on their training rows, with the suite `tasks` alone
    compared: the models that this one is compared with; pairs that one of them was trained on are
        left out for all
    phases: starts the progress of one phase
    """
    requested = SUITES.names() if suites is None else suites
    for unknown in (suite for suite in requested if suite not in SUITES):
        raise TercetError(SUITES.unknown(unknown))
    if split == "train" and list(requested) != ["tasks"]:
        raise ArgumentError("`split` is train, which only the suite `tasks` measures.", "split")
    ordered = [suite for suite in SUITES if suite in requested]
    lacking = {suite: SUITES[suite].lacks(model) for suite in ordered}
    left_out = {suite: lack for suite, lack in lacking.items() if lack is not None}
    runnable = [suite for suite in ordered if suite not in left_out]
    if not runnable and "heads" in left_out.values():
        raise TercetError("This model has no task to measure; it can only embed.")
    for suite in ordered if not runnable else ():
        raise TercetError(f"The suite `{suite}` cannot measure a model with no {left_out[suite]}.")
    began = time.perf_counter()
    model.long_inputs.clear()
    context = Context(
        EncodedTexts(model, phases), data_dir, rows=rows, compared=compared, split=split
    )
    results = {suite: SUITES[suite]().run(context) for suite in runnable}
    return describe(
        model,
        results,
        name=name,
        data=data_dir.resolve().name,
        seconds=time.perf_counter() - began,
        left_out=left_out,
    )


def describe(
    model: Model,
    results: Mapping[str, SuiteResult],
    *,
    name: str | None = None,
    data: str,
    seconds: float,
    left_out: Mapping[str, str] | None = None,
) -> Evaluation:
    """The results of suites, with what they were measured on and with."""
    return Evaluation(
        model={
            "name": name or model.name,
            "encoder": model.info.encoder,
            "recipe": model.info.recipe,
            "width": model.width,
            **({"layers": model.layers} if model.layers is not None else {}),
            "tasks": list(model.tasks),
        },
        data=data,
        versions={"tercet": tercet.__version__, **_versions()},
        machine={
            **model.engine.machine(),
            "processor": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        seconds=seconds,
        suites=results,
        left_out=left_out or {},
        long=model.describe_long(),
    )


def _versions() -> dict[str, str]:
    """Those of the packages that decide about figures, by name; torch may be missing."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
