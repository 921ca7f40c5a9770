"""`tercet mine`: closest pairs of a file, all pairs above a threshold, or groups of duplicates."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import RESULTS, print_message, print_table, progress
from tercet.cli.options import (
    TEXTS_HELP,
    ColumnOption,
    IdOption,
    LayersOption,
    LongOption,
    ModelOption,
    PluginOption,
    check_not_read,
    print_long,
)
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.search.mine import Mined

ON_A_TERMINAL = 50  # rows that a terminal shows


def mine(
    file: Annotated[str, typer.Argument(metavar="FILE", help=TEXTS_HELP)],
    top: Annotated[
        int | None, typer.Option(metavar="N", help="The N closest pairs; default: 1000.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="X", help="All pairs with a cosine of at least X.")
    ] = None,
    groups: Annotated[
        bool,
        typer.Option("--groups", help="Groups of rows connected by pairs above the threshold."),
    ] = False,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Score the pairs with the cross mode too.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .csv, .tsv, .jsonl or .parquet file; default: stdout."
        ),
    ] = None,
    model: ModelOption = None,
    column: ColumnOption = None,
    id_column: IdOption = None,
    layers: LayersOption = None,
    long: LongOption = None,
    plugin: PluginOption = None,
) -> None:
    """Find the closest pairs of a file, all pairs above a threshold, or groups of duplicates.

    With --out, the command resumes when it is run again after an interruption.

    Example: tercet mine questions.csv --threshold 0.9 --groups --out duplicates.csv
    """
    from tercet.data.table_files import check_suffix, write_table

    if out is not None:
        check_suffix(out)
    from tercet.data.spreadsheet import describe_formulas
    from tercet.data.stream import TextFile
    from tercet.model import load
    from tercet.search.mine import mine as find

    texts = TextFile.open(file, column, id_column)
    check_not_read("--out", out, texts.path)
    loaded = load(model, layers=layers, long=long)
    with _work(out) as folder:
        mined = find(
            texts,
            loaded,
            folder,
            top=top,
            threshold=threshold,
            groups=groups,
            rerank=rerank,
            phases=progress,
        )
        if out is not None:
            formulas = write_table(out, mined.schema, mined.batches())
            if formulas:
                print_message(describe_formulas(formulas))
        else:
            _print(mined)
    parts = [f"{mined.count:,} {'rows in groups' if groups else 'pairs'} of {texts.rows:,} texts"]
    parts += [f"{mined.skipped:,} rows without text were skipped"] if mined.skipped else []
    parts += [f"written to {out}"] if out is not None else []
    print_long(loaded)
    print_message("; ".join(parts) + ".")


@contextmanager
def _work(out: Path | None) -> Iterator[Path]:
    """A folder next to the output, which is kept if the work is interrupted."""
    from tercet.embed.staged import remove_work, writing_alone

    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "work"
        return
    if not out.resolve().parent.is_dir():
        raise TercetError(f"--out {out}: its folder does not exist.")
    with writing_alone(out) as work:
        yield work
        remove_work(work)


def _print(mined: Mined) -> None:
    from tercet.data.table_files import json_lines

    if not RESULTS.is_terminal:
        sys.stdout.writelines(line + "\n" for line in json_lines(mined.batches()))
        return
    rows = (row for batch in mined.batches() for row in batch.to_pylist())
    shown = [
        [f"{value:.4f}" if isinstance(value, float) else value for value in row.values()]
        for row in islice(rows, ON_A_TERMINAL)
    ]
    print_table(mined.schema.names, shown)
    if mined.count > ON_A_TERMINAL:
        print_message(f"... and {mined.count - ON_A_TERMINAL:,} more: --out FILE writes all.")
