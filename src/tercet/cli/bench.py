"""`tercet bench`: how fast this machine embeds, and the repository's benchmarks by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

import tercet
from tercet.cli.console import print_message, print_table, progress
from tercet.cli.options import MODEL_HELP, LayersOption
from tercet.errors import TercetError

FOLDER = Path(tercet.__file__).parents[2] / "benchmarks"


def bench(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A benchmark of the repository; default: measure this machine."
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENT", help="Its arguments; see its own --help."),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help=MODEL_HELP)] = None,
    layers: LayersOption = None,
    sentences: Annotated[
        int, typer.Option(metavar="N", min=64, help="Sentences to embed per run.")
    ] = 1_000,
    listed: Annotated[
        bool, typer.Option("--list", help="List the benchmarks of the repository instead.")
    ] = False,
) -> None:
    """Measure how fast a model embeds on this machine.

    Compares the engines that are installed, and sentence-transformers if it is installed, on the
    same sentences and threads: many sentences at once, and one at a time. Names what to install for
    the rest. In a clone of the repository, NAME runs one of its benchmarks; they need the extras
    `dev` and `bench`.

    Example: tercet bench
    """
    if listed:
        summaries = [[each, _summary(path)] for each, path in _scripts().items()]
        print_table(["name", "measures"], summaries)
        return
    if name is not None:
        _run_script(name, arguments or [])
        return
    from tercet.cli.rates import machine, measure
    from tercet.model import load

    loaded = load(model, layers=layers)
    with progress("measuring") as shown:
        rates = measure(loaded, count=sentences, progress=shown)
    print_table(*rates.table())
    print_message(machine(rates))
    for what, command in rates.missing.items():
        print_message(f"Not measured: {what}. To add it: {command}")


def _run_script(name: str, arguments: list[str]) -> None:
    scripts = _scripts()
    if name not in scripts:
        raise TercetError(f"Unknown benchmark {name!r}; known are {', '.join(scripts)}.")
    process = subprocess.run([sys.executable, str(scripts[name]), *arguments])
    if process.returncode:
        raise typer.Exit(process.returncode)


def _scripts() -> dict[str, Path]:
    """The benchmarks of the repository by name."""
    paths = sorted(FOLDER.glob("*.py"))
    scripts = {path.stem: path for path in paths if _is_script(path)}
    if not scripts:
        raise TercetError(
            "The benchmarks with names are not part of the installed package: clone Tercet's "
            "repository and run this command there. `tercet bench` without a name measures this "
            "machine."
        )
    return scripts


def _is_script(path: Path) -> bool:
    """Others only hold what several scripts share."""
    return '__name__ == "__main__"' in path.read_text("utf-8")


def _summary(path: Path) -> str:
    """The first line of a script's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]
