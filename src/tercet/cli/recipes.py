"""`tercet recipes`: list the recipes of the package, show one, copy one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.console import print_table, say
from tercet.errors import TercetError


def recipes(
    name: Annotated[str | None, typer.Argument(help="A recipe to show.")] = None,
    copy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it here, to change and train.")
    ] = None,
) -> None:
    """List the recipes, show one, or copy one to a file.

    Example: tercet recipes tercet/quick --copy mine.toml
    """
    from tercet.recipe import bundled, find_bundled

    if name is None:
        if copy is not None:
            raise TercetError(f"--copy {copy}: name the recipe that is to be copied.")
        parsed = [recipe.parse() for recipe in bundled()]
        rows = [(recipe.name, recipe.report or "", recipe.summary) for recipe in parsed]
        print_table(("recipe", "report", "summary"), rows)
        return
    recipe = find_bundled(name)
    if copy is None:
        print(recipe.text, end="")
        return
    write_new(copy, recipe.text)
    say(f"Copied {recipe.name} to {copy}.")


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet; nothing is left of one that could not be finished."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise TercetError(f"{path}: exists already, and is not overwritten.") from error
    try:
        with file:
            file.write(text)
    except OSError:
        path.unlink()
        raise
