"""`tercet export`: a model in another library's form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tercet.cli.console import say


def export(
    model: Annotated[str, typer.Argument(help="A model folder, a run, or a hub id.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write.")],
    form: Annotated[
        Literal["sentence-transformers"], typer.Option("--format", help="The form to write.")
    ] = "sentence-transformers",
) -> None:
    """Write a model in another library's form.

    The folder loads in sentence-transformers, old and new, in transformers, and here.

    Example: tercet export runs/best --format sentence-transformers --out exported
    """
    from tercet.model import load

    load(model, device="cpu").save(out)
    say(f"Wrote {out}, which loads in {form}, in transformers and in Tercet.")
