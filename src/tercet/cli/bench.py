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
    name: Annotated[str | None, typer.Argument(help="A benchmark; default: list all.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Its arguments; see its own --help.")
    ] = None,
) -> None:
    """List the benchmarks, or run one. Each prints a ratio against a peer in the same run.

    The benchmarks are part of the repository and need the extra `dev`.

    Example: tercet bench embed
    """
    scripts = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
    if not scripts:
        raise TercetError(
            "The benchmarks are not part of the installed package: clone Tercet's repository and "
            "run this command there."
        )
    if name is None:
        print_table(
            ["name", "measures"], [[each, _summary(path)] for each, path in scripts.items()]
        )
        return
    if name not in scripts:
        raise TercetError(f"Unknown benchmark {name!r}; known are {', '.join(scripts)}.")
    process = subprocess.run([sys.executable, str(scripts[name]), *(arguments or [])])
    if process.returncode:
        raise typer.Exit(process.returncode)


def _summary(path: Path) -> str:
    """The first line of a script's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]
