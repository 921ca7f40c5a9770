"""`tercet evaluate`: a model's figures on suites."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.console import print_table, progress, say
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.evaluate.evaluation import Evaluation, Suite


class SuiteName(StrEnum):
    """What --suite takes; the command line cannot repeat a `Literal`."""

    TASKS = "tasks"
    STS = "sts"
    TRANSFER = "transfer"
    ROBUSTNESS = "robustness"
    GEOMETRY = "geometry"
    ALL = "all"


MISSING_DATA = 3
"""The exit code where a suite lacked files."""


def evaluate(
    model: Annotated[str | None, typer.Argument(help="A model folder, a run, or a hub id.")] = None,
    suite: Annotated[
        list[SuiteName] | None,
        typer.Option(
            help="tasks: dev data of the model's own tasks. sts: STS12 to STS16, STS-B, SICK-R. "
            "transfer: SentEval. robustness: word order, typos, negation. geometry: the vectors. "
            "Give it several times for several; tasks when left out."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TERCET_DATA", help="Where the suites' files lie."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures here too.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only so many rows of each task, for a quick look.")
    ] = None,
) -> None:
    """Score a model on suites, with 95 % bootstrap intervals.

    The figure that stands for a task is marked *; that of its most exact gear counts overall.
    Where a file of a suite is missing the rest is measured, and the exit code is 3.

    Example: tercet evaluate runs/best --suite all --data DIR --json figures.json
    """
    if data is None:
        raise TercetError("--data: say where the data lies, here or in TERCET_DATA.")
    if not data.is_dir():
        raise TercetError(f"--data {data}: is no folder.")
    if json_file is not None and not json_file.parent.is_dir():
        raise TercetError(f"--json {json_file}: its folder does not exist.")
    from tercet.evaluate.evaluation import evaluate
    from tercet.model import load

    loaded = load(model)
    with progress("Measuring") as report:
        found = evaluate(
            loaded,
            data,
            suites=_suites(suite),
            name=model_name(str(model)),
            rows=rows,
            progress=lambda what, done, total: report(done, total, note=what),
        )
    _show(found)
    if json_file is not None:
        _write_json(json_file, found.to_json())
        say(f"Wrote {json_file}.")
    if found.missing:
        raise typer.Exit(MISSING_DATA)


def model_name(source: str) -> str:
    """What a model is called by: its folder, or the run's where that is called `model`."""
    path = Path(source)
    if not path.is_dir():
        return source
    resolved = path.resolve()
    return resolved.parent.name if resolved.name == "model" else resolved.name


def _suites(asked: list[SuiteName] | None) -> list[Suite]:
    from tercet.evaluate.evaluation import SUITES

    chosen = asked or [SuiteName.TASKS]
    return [suite for suite in SUITES if suite in chosen or SuiteName.ALL in chosen]


def _show(found: Evaluation) -> None:
    from tercet.evaluate.summary import summaries

    for line in found.notes:
        say(line)
    shown = summaries(found)
    for place, table in enumerate(shown):
        if place:
            print()
        if len(shown) > 1:
            print(f"# {table.title}")
        print_table(table.columns, table.rows)
    for one in found.missing:
        say(f"{one.suite}: {one.task} was not measured: {one.file} is missing.")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(json.dumps(content) + "\n", "utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
