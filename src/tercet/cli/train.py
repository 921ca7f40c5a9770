"""`tercet train`: train a recipe into a run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_message, progress
from tercet.cli.options import PluginOption

if TYPE_CHECKING:
    from tercet.training.listener import Listener


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="The name of a bundled recipe, or a TOML file.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", envvar="TERCET_DATA", help="The folder of the recipe's files."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder; default: runs/RECIPE.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a key: stages.0.steps=300; may be repeated.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in --out.")] = False,
    changed_data: Annotated[
        bool,
        typer.Option("--changed-data", help="Resume even if the data has changed since."),
    ] = False,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="cpu or cuda; default: cuda if available.")
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard logs.")
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Train a recipe into a run folder: metrics, checkpoints and the model.

    Example: tercet train tercet/quick --data DIR --out runs/quick --set stages.0.steps=300
    """
    from tercet.recipe import Recipe

    chosen = Recipe.load(recipe, overrides or [])
    folder = out or Path("runs") / chosen.name

    from tercet.training.run import train_recipe

    result = train_recipe(
        chosen,
        data=data or Path(),
        out=folder,
        resume=resume,
        changed_data=changed_data,
        device=device,
        tensorboard=tensorboard,
        listener=terminal_listener(),
    )
    if result is not None:
        print(result.model)


def terminal_listener(say: Callable[[str], None] = print_message) -> Listener:
    """Shows a run on stderr."""
    from tercet.training.listener import Shown

    return Shown(say=say, phase=progress, resume="--resume")
