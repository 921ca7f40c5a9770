"""`tercet evaluate`: a model's figures on suites."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_message, print_table, progress
from tercet.cli.options import MODEL_HELP, PluginOption
from tercet.errors import TercetError
from tercet.files import write_text
from tercet.progress import Progress

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
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help=f"{MODEL_HELP} Several are set side by side.",
        ),
    ] = None,
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
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a page to look at, in one file."),
    ] = None,
    markdown_file: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write Markdown for a pull request."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Only so many rows of each task and set, for a quick look: of the suites tasks "
            "and robustness; the others always read all.",
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Score a model on suites, with 95 % bootstrap intervals, or several models side by side.

    The figure that stands for a task is marked *; that of its most exact mode counts overall.
    Of several models each is tested against the first by a paired bootstrap of the same rows.
    Where a file of a suite is missing the rest is measured, and the exit code is 3.

    Example: tercet evaluate runs/best --suite all --data DIR --report report.html
    """
    if data is None:
        raise TercetError("--data: say where the data lies, here or in TERCET_DATA.")
    if not data.is_dir():
        raise TercetError(f"--data {data}: is no folder.")
    files = {"--json": json_file, "--report": report_file, "--markdown": markdown_file}
    for option, file in files.items():
        if file is not None and not file.parent.is_dir():
            raise TercetError(f"{option} {file}: its folder does not exist.")
    found = _measure(models or [None], data, _suites(suite), rows)
    _show(found)
    _write(found, files, run=_run_of(models))
    if any(one.missing for one in found):
        raise typer.Exit(MISSING_DATA)


def _measure(
    sources: Sequence[str | None], data: Path, suites: list[Suite], rows: int | None
) -> list[Evaluation]:
    from tercet.evaluate.evaluation import evaluate
    from tercet.evaluate.sts import leaking_data
    from tercet.model import load

    # All are loaded first: a name that is wrong is told before minutes of measuring.
    loaded = [load(source) for source in sources]
    # What one of them has seen, none of them is measured by.
    leaking = next(filter(None, map(leaking_data, loaded)), None)
    found = []
    for model in loaded:
        name = model.name
        with progress(f"Measuring {name}" if len(loaded) > 1 else "Measuring") as report:
            found.append(
                evaluate(
                    model,
                    data,
                    suites=suites,
                    name=name,
                    rows=rows,
                    leaking=leaking,
                    progress=partial(_tell, report),
                )
            )
    return found


def _tell(report: Progress, what: str, done: int, total: int) -> None:
    report(done, total, note=what)


def _suites(asked: list[SuiteName] | None) -> list[Suite]:
    from tercet.evaluate.evaluation import SUITES

    chosen = asked or [SuiteName.TASKS]
    return [suite for suite in SUITES if suite in chosen or SuiteName.ALL in chosen]


def _run_of(models: list[str] | None) -> Path | None:
    from tercet.evaluate.outputs import run_of

    return run_of(models[0]) if models else None


def _show(found: list[Evaluation]) -> None:
    for one in found:
        for line in one.notes:
            print_message(line if len(found) == 1 else f"{one.model['name']}: {line}")
    if len(found) == 1:
        _show_one(found[0])
    else:
        _show_side_by_side(found)
    for missed in dict.fromkeys(missed for one in found for missed in one.missing):
        print_message(f"{missed.suite}: {missed.task} was not measured: {missed.file} is missing.")


def _show_one(found: Evaluation) -> None:
    from tercet.evaluate.summary import summaries

    shown = summaries(found)
    for place, table in enumerate(shown):
        if place:
            print()
        if len(shown) > 1:
            print(f"# {table.title}")
        print_table(table.columns, table.rows)


def _show_side_by_side(found: list[Evaluation]) -> None:
    from tercet.evaluate.outputs import to_tables

    for place, table in enumerate(to_tables(found)):
        if place:
            print()
        print(f"# {table.caption}")
        print_table(table.columns, [[cell.text for cell in row] for row in table.rows])


def _write(found: list[Evaluation], files: Mapping[str, Path | None], *, run: Path | None) -> None:
    from tercet.evaluate.outputs import to_json, to_report, to_text

    made = {
        "--json": lambda: json.dumps(to_json(found)) + "\n",
        "--report": lambda: to_report(found, run=run),
        "--markdown": lambda: to_text(found),
    }
    for option, file in files.items():
        if file is not None:
            write_text(file, made[option]())
            print_message(f"Wrote {file}.")
