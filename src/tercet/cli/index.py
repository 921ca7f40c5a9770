"""`tercet index`: make an index of a file's texts, or change one by id."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli.console import Report, progress, say
from tercet.cli.options import ModelOption
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.data.stream import TextFile
    from tercet.search.ann import Progress
    from tercet.search.index import Index


def index(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Texts: plain, CSV, JSON, Parquet.")],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The folder of the index.")],
    add: Annotated[bool, typer.Option("--add", help="Add rows with new ids.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Replace rows by their ids, and add new ones.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete rows by the ids of FILE.")
    ] = False,
    model: ModelOption = None,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="The text column.")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="The id column; else rows from 1.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="This process, or a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of the Ray cluster; none starts one.")
    ] = None,
) -> None:
    """Make an index of texts to search in, or change one by id.

    An index that stands in FOLDER is replaced when the new one is ready; a command that was
    interrupted goes on where it was when it is given again.

    Example: tercet index news.csv --out news.index --column title
    """
    if add + update + delete > 1:
        raise TercetError("Give one of --add, --update and --delete.")
    if address is not None and engine != "ray":
        raise TercetError("--address is that of a Ray cluster: give --engine ray too.")
    if engine == "ray":
        if add or update or delete:
            raise TercetError(
                "--engine ray makes a whole index: --add, --update, --delete are not for it."
            )
        _build_with_ray(file, out, model, column, id_column, address)
        return
    if delete:
        _delete(file, out, column, id_column)
        return
    from tercet.data.stream import TextFile

    texts = TextFile.open(file, column, id_column)
    if add or update:
        _change(texts, out, model, add=add)
    else:
        _build(texts, out, model)


def _build(texts: TextFile, out: str, model: str | None) -> None:
    from tercet.model import SHIPPED, load
    from tercet.search.index import Index, check_target

    check_target(Path(out))
    loaded = load(model)
    with progress("index", total=texts.rows) as report:
        built = Index.build(out, texts, loaded, name=model or SHIPPED, progress=_told(report))
    _tell(built, texts.rows - built.count())


def _build_with_ray(
    source: str,
    out: str,
    model: str | None,
    column: str | None,
    id_column: str | None,
    address: str | None,
) -> None:
    from tercet.search.index import Index
    from tercet.search.ray_index import index_with_ray

    with progress("index") as report:
        skipped = index_with_ray(
            source,
            out,
            model=model,
            column=column,
            id_column=id_column,
            address=address,
            progress=lambda done, total: report(done, total),
            say=say,
        )
        built = Index.open(out)
        built.optimise(_told(report))
    _tell(built, skipped)


def _change(texts: TextFile, out: str, model: str | None, *, add: bool) -> None:
    from tercet.model import load
    from tercet.search.index import Index

    changed = Index.open(out)
    if model is not None:
        changed = Index.open(out, load(model))
    with progress("index", total=texts.rows) as report:
        change = changed.add if add else changed.update
        count = change(texts, progress=_told(report))
    say(f"{'Added' if add else 'Added or replaced'} {count:,} rows.")
    _tell(changed, texts.rows - count)


def _delete(file: str, out: str, column: str | None, id_column: str | None) -> None:
    from tercet.data.stream import read_ids
    from tercet.search.index import Index

    if column is not None:
        raise TercetError("--delete reads ids, not texts: name their column with --id.")
    ids = read_ids(file, id_column)
    changed = Index.open(out)
    with progress("index") as report:
        count = changed.delete(ids, progress=_told(report))
    say(f"Deleted {count:,} rows; {len(ids) - count:,} of {len(ids):,} ids were not there.")
    _tell(changed, 0)


def _told(report: Report) -> Progress:
    return lambda what, done, total: report(done, total, note=what)


def _tell(index: Index, skipped: int) -> None:
    setting = index.setting
    how = "searched exactly"
    if setting is not None:
        how = f"searched by {setting.kind} with recall {setting.recall:.3f}"
    left = f"; {skipped:,} rows without text left out" if skipped else ""
    say(f"{index.folder}: {index.count():,} rows, version {index.version}, {how}{left}.")
