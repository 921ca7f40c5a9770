"""`tercet embed`: the vectors of a file's texts, as Parquet or npy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_message, progress
from tercet.cli.options import (
    AddressOption,
    ColumnOption,
    EngineOption,
    LayersOption,
    LongOption,
    ModelOption,
    PluginOption,
    WidthOption,
    check_address,
    print_long,
)
from tercet.progress import Progress

if TYPE_CHECKING:
    from tercet.model import Model


def embed(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Plain text, CSV, TSV, JSON lines or Parquet; with Ray also a folder or a URI.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE.parquet|.npy", help="All columns and the vectors, or only the vectors."
        ),
    ],
    model: ModelOption = None,
    column: ColumnOption = None,
    layers: LayersOption = None,
    width: WidthOption = None,
    long: LongOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    plugin: PluginOption = None,
) -> None:
    """Embed every row of a file, in its order. Run again after an interruption, it resumes.

    Example: tercet embed questions.csv --out vectors.parquet --model runs/best --column question
    """
    check_address(address, engine)
    loaded: Model | None = None
    with progress("Embedding") as report:
        rate = Rate(report)
        if engine == "ray":
            from tercet.embed.ray_engine import embed_with_ray

            rows = embed_with_ray(
                file,
                out,
                model=model,
                column=column,
                address=address,
                layers=layers,
                width=width,
                long=long,
                progress=rate,
                log=print_message,
            )
        else:
            from tercet.embed.local import embed_file
            from tercet.model import load

            loaded = load(model, layers=layers, long=long)
            rows = embed_file(file, out, model=loaded, column=column, width=width, progress=rate)
    if loaded is not None:
        print_long(loaded)
    print_message(f"Wrote {rows:,} vectors to {out}.")


class Rate:
    """A progress that adds the rate since the first call, which counts rows from an earlier run."""

    def __init__(self, report: Progress) -> None:
        self._report = report
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None:
        now = time.monotonic()
        first, since = self._first = self._first or (done, now)
        rate = (done - first) / max(now - since, 1e-9)
        self._report(done, total, note=f"{rate:,.0f} rows/s")
