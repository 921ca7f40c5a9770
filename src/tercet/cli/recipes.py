"""`tercet recipes`: list the recipes of the package, show one or copy one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.console import print_message, print_table
from tercet.errors import TercetError


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A recipe to show.")] = None,
    copy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Copy the recipe to this file.")
    ] = None,
) -> None:
    """List the recipes, show one, or copy one to a file.

    Example: tercet recipes tercet/quick --copy mine.toml
    """
    from tercet.recipe import bundled, find_bundled

    if name is None:
        if copy is not None:
            raise TercetError("--copy needs the name of a recipe.")
        parsed = [recipe.parse() for recipe in bundled()]
        rows = [(recipe.name, recipe.report or "", recipe.summary) for recipe in parsed]
        print_table(("recipe", "report", "summary"), rows)
        return
    recipe = find_bundled(name)
    if copy is None:
        print(recipe.text, end="")
        return
    write_new(copy, recipe.text)
    print_message(f"Copied {recipe.name} to {copy}.")


def write_new(path: Path, text: str) -> None:
    """Write a new file; an incomplete one is removed."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise TercetError(f"{path}: already exists and is not overwritten.") from error
    try:
        with file:
            file.write(text)
    except OSError:
        path.unlink()
        raise
