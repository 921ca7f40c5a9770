"""`tercet bench`: the project's benchmarks, each a ratio against a peer."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

import tercet
from tercet.cli.console import print_table
from tercet.errors import TercetError

FOLDER = Path(tercet.__file__).parents[2] / "benchmarks"


def bench(
    name: Annotated[str | None, typer.Argument(help="A benchmark; all are listed without.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="What it takes; its own --help says.")
    ] = None,
) -> None:
    """List the benchmarks, or run one: each prints a ratio against a peer in the same run.

    They are part of the repository and need the extra `dev`.

    Example: tercet bench embed
    """
    found = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
    if not found:
        raise TercetError(
            "The benchmarks are part of Tercet's repository, and this is an installed package: "
            "clone the repository and run it there."
        )
    if name is None:
        print_table(["name", "measures"], [[each, _summary(path)] for each, path in found.items()])
        return
    if name not in found:
        raise TercetError(f"No benchmark is called {name!r}: there are {', '.join(found)}.")
    ended = subprocess.run([sys.executable, str(found[name]), *(arguments or [])])
    if ended.returncode:
        raise typer.Exit(ended.returncode)


def _summary(path: Path) -> str:
    """The first line of a script's docstring."""
    told = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return told.partition("\n")[0]
