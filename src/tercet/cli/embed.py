"""`tercet embed`: the vectors of a file's texts, as Parquet or npy."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from tercet.cli.console import Report, progress, say
from tercet.cli.options import ModelOption
from tercet.errors import TercetError


def embed(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Plain text, CSV, TSV, JSON lines or Parquet; Ray takes folders and URIs too.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE.parquet|.npy", help="All columns and the vectors, or the vectors alone."
        ),
    ],
    model: ModelOption = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The text column; guessed when left out.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="This process, or a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="A", help="Of a Ray cluster; one on this machine when left out."),
    ] = None,
) -> None:
    """Embed every row of a file, in its order; what was interrupted goes on where it was.

    Example: tercet embed questions.csv --out vectors.parquet --model runs/best --column question
    """
    if address is not None and engine != "ray":
        raise TercetError("--address is of a Ray cluster: give --engine ray too.")
    with progress("Embedding") as report:
        tell = Rate(report)
        if engine == "ray":
            from tercet.embed.ray_engine import embed_with_ray

            rows = embed_with_ray(
                file, out, model=model, column=column, address=address, progress=tell, say=say
            )
        else:
            from tercet.embed.identity import identify
            from tercet.embed.local import embed_file
            from tercet.model import load

            loaded = load(model)
            identity = identify(loaded, model)
            rows = embed_file(
                file, out, model=loaded, identity=identity, column=column, progress=tell
            )
    say(f"Wrote {rows:,} vectors to {out}.")


class Rate:
    """Passes progress on with the rate since the first call, which tells of what was there."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        first, since = self._first = self._first or (done, now)
        rate = (done - first) / max(now - since, 1e-9)
        self._report(done, total, note=f"{rate:,.0f} rows/s")
