"""`tercet weights`: fetch the weights of an encoder, or list the known ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tercet.cli.console import print_table
from tercet.errors import TercetError


def weights(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A known name, a hub id (owner/model) or a folder."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Copy the files to this new folder.")
    ] = None,
) -> None:
    """Fetch the weights of an encoder, check their sha256, and print their folder.

    Without a name, list the known weights and their folders on this machine.

    Example: tercet weights all-minilm-l6-v2 --out encoders/minilm
    """
    from tercet.weights import REGISTRY, copy_to, present, resolve

    if name is None:
        if out is not None:
            raise TercetError("--out needs the name of the weights to copy.")
        rows = [
            (known, entry.about, entry.hub_id or "-", present(known) or "not fetched")
            for known, entry in REGISTRY.items()
        ]
        print_table(("name", "encoder", "hub id", "on this machine"), rows)
        return
    if out is None:
        out = resolve(name)
    else:
        copy_to(name, out)
    print(out)
