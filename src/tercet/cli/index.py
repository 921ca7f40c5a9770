"""`tercet index`: build an index of a file's texts, or change one by id."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_message, progress
from tercet.cli.options import (
    TEXTS_HELP,
    AddressOption,
    ColumnOption,
    EngineOption,
    IdOption,
    LayersOption,
    LongOption,
    ModelOption,
    PluginOption,
    WidthOption,
    check_address,
    print_long,
)
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.data.stream import TextFile
    from tercet.search.index import Index
    from tercet.specs import Long


def index(
    file: Annotated[str, typer.Argument(metavar="FILE", help=TEXTS_HELP)],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The folder of the index.")],
    add: Annotated[bool, typer.Option("--add", help="Add rows with new ids.")] = False,
    update: Annotated[
        bool, typer.Option("--update", help="Replace rows by id, and add rows with new ids.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the rows whose ids are in FILE.")
    ] = False,
    model: ModelOption = None,
    column: ColumnOption = None,
    id_column: IdOption = None,
    layers: LayersOption = None,
    width: WidthOption = None,
    long: LongOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    plugin: PluginOption = None,
) -> None:
    """Build an index of texts to search, or change one by id.

    An existing index in FOLDER is replaced when the new one is ready. Run again after an
    interruption, the command resumes. With --add and --update, the default of --model is the model
    of the index.

    Example: tercet index news.csv --out news.index --column title
    """
    if add + update + delete > 1:
        raise TercetError("Give only one of --add, --update and --delete.")
    check_address(address, engine)
    if engine == "ray":
        if add or update or delete:
            raise TercetError(
                "--engine ray builds a whole index; --add, --update and --delete do not go with it."
            )
        from tercet.search.index import Index
        from tercet.search.ray_index import index_with_ray

        with progress("embedding") as report:
            skipped = index_with_ray(
                file,
                out,
                model=model,
                column=column,
                id_column=id_column,
                address=address,
                layers=layers,
                width=width,
                long=long,
                progress=report,
                log=print_message,
            )
        built = Index.open(out)
        built.optimise(progress)
        _print_summary(built, skipped=skipped)
        return
    if delete:
        _delete(file, out, column, id_column)
        return
    from tercet.data.stream import TextFile

    texts = TextFile.open(file, column, id_column)
    if add or update:
        for option, given in {"--long": long, "--layers": layers, "--width": width}.items():
            if given is not None:
                raise TercetError(f"{option}: an index has its own; build it again to change it.")
        _change(texts, out, model, add=add)
    else:
        _build(texts, out, model, layers=layers, width=width, long=long)


def _build(
    texts: TextFile,
    out: str,
    model: str | None,
    *,
    layers: int | None,
    width: int | None,
    long: Long | None,
) -> None:
    from tercet.model import load
    from tercet.search.index import Index, check_target

    check_target(Path(out))
    loaded = load(model, layers=layers, long=long)
    built = Index.build(out, texts, loaded, width=width, phases=progress)
    print_long(loaded)
    _print_summary(built, skipped=texts.rows - built.count())


def _change(texts: TextFile, out: str, model: str | None, *, add: bool) -> None:
    from tercet.model import load
    from tercet.search.index import Index

    changed = Index.open(out)
    if model is not None:
        changed.model = load(model, layers=changed.layers, long=changed.long)
    change = changed.add if add else changed.update
    count = change(texts, phases=progress)
    print_long(changed.model)
    print_message(f"{'Added' if add else 'Added or replaced'} {count:,} rows.")
    _print_summary(changed, skipped=texts.rows - count)


def _delete(file: str, out: str, column: str | None, id_column: str | None) -> None:
    from tercet.data.stream import read_ids
    from tercet.search.index import Index

    if column is not None:
        raise TercetError("--delete reads ids, not texts: name their column with --id.")
    ids = read_ids(file, id_column)
    changed = Index.open(out)
    count = changed.delete(ids, phases=progress)
    print_message(
        f"Deleted {count:,} rows; {len(ids) - count:,} of {len(ids):,} ids were not in the index."
    )
    _print_summary(changed, skipped=0)


def _print_summary(index: Index, *, skipped: int) -> None:
    setting = index.setting
    how = "searched exactly"
    if setting is not None:
        how = f"searched by {setting.kind} with recall {setting.recall:.3f}"
    note = f"; {skipped:,} rows without text were skipped" if skipped else ""
    print_message(f"{index.folder}: {index.count():,} rows, version {index.version}, {how}{note}.")
