"""`tercet evaluate`: run suites on a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tercet.cli.console import print_message, print_table, progress
from tercet.cli.options import (
    MODEL_HELP,
    LayersOption,
    LongOption,
    PluginOption,
    check_not_read,
)
from tercet.errors import TercetError
from tercet.evaluation.suites import SUITES
from tercet.files import write_text
from tercet.progress import Progress

if TYPE_CHECKING:
    from tercet.data.layouts import Split
    from tercet.evaluation.evaluation import Evaluation
    from tercet.model import Model
    from tercet.report.report import Report

ALL = "all"
MISSING_DATA = 3
"""The exit code if a suite lacks files."""
SUITES_HELP = ". ".join(f"{name}: {SUITES[name].description}" for name in SUITES)


def evaluate(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help=f"{MODEL_HELP} Several are compared."),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SUITE",
            help=f"{SUITES_HELP}. all: all suites. May be repeated; default: tasks.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TERCET_DATA", help="The folder of the suites' files."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Score the suite tasks on this labelled file instead."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The task of --file; default: the only one."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A text column of --file; give it twice for pairs."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The label column of --file.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the results as JSON.")
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a single-file HTML report."),
    ] = None,
    markdown_file: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write Markdown for a pull request."),
    ] = None,
    mistakes_file: Annotated[
        Path | None,
        typer.Option(
            "--mistakes",
            metavar="FILE.csv",
            help="Write all mistakes of the suite tasks: wrong classes, and grades that are off by "
            "a tenth of their range or more.",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Use at most N rows per task and set; some suites use all."
        ),
    ] = None,
    split: Annotated[
        Literal["dev", "train"],
        typer.Option(help="train: score the tasks on their training rows (suite tasks only)."),
    ] = "dev",
    layers: LayersOption = None,
    long: LongOption = None,
    plugin: PluginOption = None,
) -> None:
    """Score a model on suites, with 95 % intervals, or compare several models.

    * marks the main metric of a task; the overall score uses its most accurate mode. Each further
    model is tested against the first by a paired bootstrap of the same rows. If a file of a suite
    is missing, the rest is measured and the exit code is 3.

    --file needs no --data: tercet evaluate runs/best --file test.csv --label team

    Example: tercet evaluate runs/best --suite all --data DIR --report report.html
    """
    from tercet.evaluation.labelled import on_file
    from tercet.model import load
    from tercet.report.report import Report
    from tercet.report.training import run_of

    if file is None:
        for option, given in {"--task": task, "--text": text, "--label": label}.items():
            if given:
                raise TercetError(f"{option} needs --file.")
        folder = _folder(data)
    elif suite not in (None, ["tasks"]):
        raise TercetError("--file goes with the suite `tasks` only.")
    else:
        folder = file.absolute().parent
    suites = _suites(suite or ["tasks"])
    if mistakes_file is not None and "tasks" not in suites:
        raise TercetError("--mistakes: lists what the suite tasks predicts; add --suite tasks.")
    files = {
        "--json": json_file,
        "--report": report_file,
        "--markdown": markdown_file,
        "--mistakes": mistakes_file,
    }
    for option, written in files.items():
        if written is not None and not written.parent.is_dir():
            raise TercetError(f"{option} {written}: its folder does not exist.")
        if file is not None and file.exists():
            check_not_read(option, written, file)
    # All are loaded first: a wrong name is reported before minutes of measuring.
    sources: Sequence[str | None] = models or [None]
    loaded = [load(source, layers=layers, long=long) for source in sources]
    if file is not None:
        loaded = [on_file(model, file, task=task, texts=text, label=label) for model in loaded]
    evaluations = _measure(loaded, folder, suites, rows, split)
    run = run_of(models[0]) if models else None
    report = Report(evaluations, run=run, other_rows=file is not None or split == "train")
    _show(report)
    _write(report, files)
    if any(evaluation.missing for evaluation in evaluations):
        raise typer.Exit(MISSING_DATA)


def _suites(names: Sequence[str]) -> list[str]:
    for name in names:
        if name != ALL and name not in SUITES:
            raise TercetError(f"--suite {name}: {SUITES.unknown(name)}")
    return SUITES.names() if ALL in names else list(names)


def _folder(data: Path | None) -> Path:
    if data is None:
        raise TercetError(
            "--data: give the folder with the data, here or in TERCET_DATA; or with --file a "
            "labelled file."
        )
    if not data.is_dir():
        raise TercetError(f"--data {data}: is not a folder.")
    return data


def _measure(
    loaded: Sequence[Model], data: Path, suites: list[str], rows: int | None, split: Split
) -> list[Evaluation]:
    from tercet.evaluation.evaluation import evaluate

    evaluations = []
    for model in loaded:
        name = model.name
        with progress(f"Measuring {name}" if len(loaded) > 1 else "Measuring") as shown:

            @contextmanager
            def phases(what: str, shown: Progress = shown) -> Iterator[Progress]:
                yield lambda done, total=None, *, note="": shown(done, total, note=what)

            options: dict[str, Any] = {
                "suites": suites,
                "rows": rows,
                "split": split,
                "compared": loaded,
            }
            evaluations.append(evaluate(model, data, **options, phases=phases))
    return evaluations


def _show(report: Report) -> None:
    several = len(report.evaluations) > 1
    for evaluation in report.evaluations:
        for note in evaluation.notes:
            print_message(f"{evaluation.name}: {note}" if several else note)
    for warning in report.warnings:
        print_message(f"Warning: {warning}")
    if report.verdict:
        print_message(report.verdict)
    tables = report.tables()
    for place, (title, table) in enumerate(tables):
        if place:
            print()
        if len(tables) > 1:
            print(f"# {title}: {table.caption}")
        print_table(table.columns, [[cell.full or cell.text for cell in row] for row in table.rows])
    missing = [file for evaluation in report.evaluations for file in evaluation.missing]
    for file in dict.fromkeys(missing):
        print_message(f"{file.suite}: {file.task} was not measured: {file.file} is missing.")


def _write(report: Report, files: Mapping[str, Path | None]) -> None:
    formats: dict[str, Callable[[], str]] = {
        "--json": lambda: json.dumps(report.to_json()) + "\n",
        "--report": report.to_html,
        "--markdown": report.to_markdown,
        "--mistakes": lambda: report.mistakes().to_csv(),
    }
    for option, file in files.items():
        if file is not None:
            write_text(file, formats[option]())
            print_message(f"Wrote {file}.")
    if files["--mistakes"] is not None and (cells := report.mistakes().neutralised_cells):
        from tercet.data.spreadsheet import describe_formulas

        print_message(f"{files['--mistakes']}: {describe_formulas(cells)}")
