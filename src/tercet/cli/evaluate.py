"""`tercet evaluate`: a model's figures on a suite."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tercet import __version__
from tercet.cli.console import print_table, progress, say
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.evaluate.results import Figure, TasksResult
    from tercet.model import Model

SCHEMA = 1


def evaluate(
    model: Annotated[str | None, typer.Argument(help="A model folder, a run, or a hub id.")] = None,
    suite: Annotated[
        Literal["tasks"], typer.Option(help="tasks: dev data of the model's own tasks.")
    ] = "tasks",
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TERCET_DATA", help="Where the tasks' files lie."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the figures here too.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only the first rows of each task, for a quick look.")
    ] = None,
) -> None:
    """Score a model on a suite, with 95 % bootstrap intervals.

    The figure that stands for a task is marked *; that of its most exact gear counts overall.

    Example: tercet evaluate runs/best --data DIR --json figures.json
    """
    if data is None:
        raise TercetError("--data: say where the data lies, here or in TERCET_DATA.")
    if not data.is_dir():
        raise TercetError(f"--data {data}: is no folder.")
    if json_file is not None and not json_file.parent.is_dir():
        raise TercetError(f"--json {json_file}: its folder does not exist.")
    from tercet.data.examples import describe_skipped
    from tercet.evaluate.tasks import evaluate_tasks
    from tercet.model import load

    loaded = load(model)
    with progress("Measuring") as report:
        result = evaluate_tasks(loaded, data, rows=rows, progress=report)
    for name, task in result.tasks.items():
        if task.skipped:
            say(f"{name}: {describe_skipped(task.skipped)}")
    print_table(("task", "gear", "rows", "metric", "figure", "95 % interval"), list(_lines(result)))
    if json_file is not None:
        _write_json(json_file, _described(str(model), suite, loaded, result))
        say(f"Wrote {json_file}.")


def _lines(result: TasksResult) -> Iterator[tuple[str, ...]]:
    for name, task in result.tasks.items():
        for gear, figures in task.gears.items():
            for metric, figure in figures.items():
                marked = f"{metric}*" if metric == task.metric else metric
                yield name, gear, str(task.rows), marked, _value(figure.value), _interval(figure)
    for mean, value in result.overall.items():
        yield "overall", "", "", mean, _value(value), ""


def _value(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _interval(figure: Figure) -> str:
    if figure.interval is None:
        return ""
    low, high = figure.interval
    return f"{low:.4f} to {high:.4f}"


def _described(source: str, suite: str, model: Model, result: TasksResult) -> dict[str, Any]:
    packages = ("torch", "tokenizers", "numpy")
    return {
        "schema": SCHEMA,
        "suite": suite,
        "model": source,
        "encoder": model.info.encoder,
        "recipe": model.info.recipe,
        "device": model.network.device.type,
        "versions": {"tercet": __version__, **{name: version(name) for name in packages}},
        **result.to_json(),
    }


def _write_json(path: Path, content: dict[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
