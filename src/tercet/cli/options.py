"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tercet.cli.console import print_message
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.model import Model

MODEL_HELP = "A model folder, a run or a hub id; default: the model that ships."
TEXTS_HELP = "A file of texts: plain text, CSV, TSV, JSON lines or Parquet."
ModelOption = Annotated[str | None, typer.Option(metavar="MODEL", help=MODEL_HELP)]
ColumnOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The text column; default: guessed.")
]
IdOption = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="NAME", help="The id column; default: `id`, or row numbers from 1."
    ),
]
EngineOption = Annotated[
    Literal["local", "ray"], typer.Option(help="Run in this process or on a Ray cluster.")
]
LongOption = Annotated[
    Literal["truncate", "windows"] | None,
    typer.Option(
        help="What to do with texts that are longer than the model reads: drop their end, or read "
        "them whole, in windows; default: the model's setting."
    ),
]
LAYERS_HELP = (
    "Use only the first N layers: faster, less accurate. The model must be trained for this depth. "
    "Default: all."
)
LayersOption = Annotated[int | None, typer.Option(metavar="N", min=1, help=LAYERS_HELP)]
WidthOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Cut vectors to their first N numbers; N is one of the model's widths. Default: all.",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="The Ray cluster; default: a new one on this machine."),
]


def _load_plugins(files: list[Path] | None) -> list[Path] | None:
    if files:
        from tercet.plugins import load_plugin

        for file in files:
            load_plugin(file)
    return files


PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        envvar="TERCET_PLUGIN",
        help="A Python file that registers your own parts; may be repeated.",
        callback=_load_plugins,
        is_eager=True,
    ),
]


def check_address(address: str | None, engine: str) -> None:
    if address is not None and engine != "ray":
        raise TercetError("--address needs --engine ray.")


def print_long(model: Model) -> None:
    """Tell how many inputs were longer than the model reads at once."""
    for sentence in model.describe_long():
        hint = " --long windows reads them whole." if model.info.long == "truncate" else ""
        print_message(sentence + hint)


def check_not_read(option: str, written: Path | None, read: Path) -> None:
    """Raise if a file that is written would replace the one that is read, whose rows it lacks."""
    if written is not None and written.exists() and written.samefile(read):
        raise TercetError(
            f"{option} {written}: is the file that is read, and its rows would be lost; name "
            "another file."
        )
