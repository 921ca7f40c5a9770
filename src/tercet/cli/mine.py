"""`tercet mine`: closest pairs of a file, all pairs above a threshold, or groups of duplicates."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import RESULTS, print_table, progress, say
from tercet.cli.options import ModelOption
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.search.mine import Mined

ON_A_TERMINAL = 50  # rows that a terminal shows


def mine(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Texts: plain, CSV, JSON, Parquet.")],
    top: Annotated[
        int | None, typer.Option(metavar="N", help="That many closest pairs; 1000 if nothing else.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="X", help="All pairs whose cosine is at least this.")
    ] = None,
    groups: Annotated[
        bool, typer.Option("--groups", help="Groups that pairs above the threshold make.")
    ] = False,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Let the cross mode judge what was found.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .csv, .tsv, .jsonl or .parquet; else stdout."),
    ] = None,
    model: ModelOption = None,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="The text column.")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="The id column; else rows from 1.")
    ] = None,
) -> None:
    """Find the closest pairs of a file, or all that are close, or groups of duplicates.

    With --out, a command that was interrupted goes on where it was when it is given again.

    Example: tercet mine questions.csv --threshold 0.9 --groups --out duplicates.csv
    """
    from tercet.search.table_files import check_suffix, write_table

    if out is not None:
        check_suffix(out)
    from tercet.data.stream import TextFile
    from tercet.model import load
    from tercet.search.mine import mine as find

    texts = TextFile.open(file, column, id_column)
    loaded = load(model)
    with _work(out) as folder, progress("mine", total=texts.rows) as report:
        found = find(
            texts,
            loaded,
            folder,
            top=top,
            threshold=threshold,
            groups=groups,
            rerank=rerank,
            progress=lambda what, done, total: report(done, total, note=what),
        )
        if out is not None:
            write_table(out, found.schema, found.batches())
        else:
            _print(found)
    told = [f"{found.count:,} {'rows in groups' if groups else 'pairs'} of {texts.rows:,} texts"]
    told += [f"{found.skipped:,} rows without text left out"] if found.skipped else []
    told += [f"written to {out}"] if out is not None else []
    say("; ".join(told) + ".")


@contextmanager
def _work(out: Path | None) -> Iterator[Path]:
    """A folder beside the output, which stays if the work is interrupted."""
    from tercet.embed.staged import work_folder

    if out is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "work"
        return
    if not out.resolve().parent.is_dir():
        raise TercetError(f"{out}: there is no folder {out.parent} to write it into.")
    yield work_folder(out)
    shutil.rmtree(work_folder(out), ignore_errors=True)


def _print(found: Mined) -> None:
    from tercet.search.table_files import json_lines

    if not RESULTS.is_terminal:
        sys.stdout.writelines(line + "\n" for line in json_lines(found.batches()))
        return
    rows = [row for batch in found.batches() for row in islice(batch.to_pylist(), ON_A_TERMINAL)]
    shown = [[_cell(value) for value in row.values()] for row in rows[:ON_A_TERMINAL]]
    print_table(found.schema.names, shown)
    if found.count > ON_A_TERMINAL:
        say(f"... and {found.count - ON_A_TERMINAL:,} more: --out FILE writes all.")


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
