"""`tercet fit`: labelled files to a model, without a recipe."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tercet.cli.console import print_message, print_table
from tercet.cli.train import terminal_listener
from tercet.errors import TercetError

OF_ALL = "For one of several files: TASK=COLUMN."


def fit(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Labelled files; each becomes a task.")
    ],
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help=f"The text column, twice for pairs; default: guessed. {OF_ALL}"
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="The label column; default: guessed. Also TASK=COLUMN."
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="classes, multi-label or grades; default: guessed. Also TASK=KIND.",
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="The task's name, one per FILE; default: the file's name."
        ),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Rows to measure on; default: split off, or cross-validated. Also TASK=FILE.",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Rows with the same value here stay on one side of every split. Also TASK=COLUMN.",
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(metavar="N", help="Minutes that it may take, roughly.", min=0.1)
    ] = 10.0,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="The encoder to start from; default: the model that ships."
        ),
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Add the tasks to this finished model; its own answers stay the same.",
        ),
    ] = None,
    long: Annotated[
        Literal["truncate", "windows"] | None,
        typer.Option(
            help="What to do with texts that are longer than the encoder reads: drop their end, or "
            "read them whole, in windows; default: windows if there are many."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; default: runs/NAME.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="The seed of the split and the training.")
    ] = 11711,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="cpu or cuda; default: cuda if available.")
    ] = None,
) -> None:
    """Train one model on your own labelled files: classes, several labels per row, or grades, of
    single texts or pairs.

    Prints what it understood of each file, compares its model with the simplest ones, and writes a
    run folder: the model, a report, and the recipe, to edit and train again.

    Example: tercet fit tickets.csv questions.csv --minutes 10 --out runs/mine
    """
    from tercet.fitting.fit import fit as fit_files
    from tercet.fitting.sources import names_of

    names = names_of(files, task)
    result = fit_files(
        *files,
        text=_by_task(text, names, several=True),
        label=_by_task(label, names),
        kind=_by_task(kind, names),
        task=task or None,
        dev=_by_task(dev, names, own=True),
        group=_by_task(group, names),
        encoder=encoder,
        onto=onto,
        long=long,
        minutes=minutes,
        seed=seed,
        out=out,
        device=device,
        listener=terminal_listener(_say),
    )
    columns = ["Task", "Metric", "Score", "Interval", "Linear model", "Majority class", "Rows"]
    print_table(columns, [_row(name, score) for name, score in result.scores.items()])
    print_message(f"Model: {result.folder}/model. Report: {result.folder}/report.html.")
    print_message(
        f"Predict: tercet predict {next(iter(result.scores))} FILE --model {result.folder} --out "
        "predicted.csv"
    )
    print_message(
        f"Train its recipe again: tercet train {result.folder}/recipe.toml --data "
        f"{shlex.quote(str(_short(Path(result.data))))} --out DIR"
    )
    if result.shortage is not None:
        print_message(f"Warning: {result.shortage}")


def _say(sentence: str) -> None:
    """Print what a fit says; that time limited the model is the last line of the command."""
    from tercet.fitting.budget import LIMITED

    if not sentence.startswith(f"Warning: {LIMITED}"):
        print_message(with_flags(sentence))


def with_flags(sentence: str) -> str:
    """A sentence that speaks of arguments such as `label="COLUMN"`, with the flags for them."""
    return re.sub(r"`(label|text|kind|dev)=\"([A-Za-z-]+)\"`", r"--\1 \2", sentence)


def _short(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _by_task(
    values: list[str] | None, names: list[str], *, several: bool = False, own: bool = False
) -> Any:
    """NAME=VALUE for single tasks; a plain VALUE is for all, unless each needs its own."""
    if not values:
        return None
    found: dict[str, list[str]] = {}
    plain: list[str] = []
    for value in values:
        name, equals, rest = value.partition("=")
        if equals and name in names:
            found.setdefault(name, []).append(rest)
        else:
            plain.append(value)
    if plain and found:
        raise TercetError(
            f"{plain[0]}: write NAME=VALUE for every file, where one has it; the names are "
            f"{', '.join(names)}."
        )
    if plain and own and len(names) > 1:
        raise _unnamed(plain, names)
    if plain:
        return plain if several else _only(plain, names)
    return {name: each if several else _only(each, names) for name, each in found.items()}


def _only(values: list[str], names: list[str]) -> str:
    if len(values) > 1:
        raise _unnamed(values, names)
    return values[0]


def _unnamed(values: list[str], names: list[str]) -> TercetError:
    return TercetError(
        f"{' and '.join(values)}: write NAME=VALUE for each file; the names are {', '.join(names)}."
    )


def _row(name: str, score: Any) -> list[str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    interval = "" if score.interval is None else " to ".join(map(number, score.interval))
    cells = [score.metric, number(score.value), interval]
    return [name, *cells, number(score.linear), number(score.majority), f"{score.rows:,}"]
