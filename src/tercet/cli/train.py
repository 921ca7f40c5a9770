"""`tercet train`: train a recipe into a run folder."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.console import print_message, progress
from tercet.cli.options import PluginOption
from tercet.progress import Progress

if TYPE_CHECKING:
    from tercet.folders.model_card import Metrics


def train(
    recipe: Annotated[str, typer.Argument(help="The name of a bundled recipe, or a TOML file.")],
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
        str | None, typer.Option(help="cpu or cuda; default: cuda if available.")
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
        listener=TerminalListener(),
    )
    if result is not None:
        print(result.model)


class TerminalListener:
    """Shows a run on stderr: a bar with losses, rate and time left, and one line per score."""

    def __init__(self) -> None:
        self._open: Any = None
        self._report: Progress | None = None
        self._name = ""
        self._steps = self._done = 0
        self._rows = 0
        self._since = time.monotonic()
        self._recent: dict[str, float] = {}

    def say(self, sentence: str) -> None:
        print_message(sentence)

    def working(self, what: str) -> AbstractContextManager[Progress]:
        return progress(what)

    def begin_stage(self, name: str, *, steps: int, done: int) -> None:
        self._name, self._steps, self._done = name, steps, done
        self._rows, self._since = 0, time.monotonic()
        self._recent = {}
        self._open = progress(f"stage {name}", total=steps)
        self._report = self._open.__enter__()

    def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None:
        for line in lines:
            for task, loss in line["loss"].items():
                before = self._recent.get(task, loss)
                self._recent[task] = 0.95 * before + 0.05 * loss
        self._done += len(lines)
        self._rows += rows
        rate = self._rows / max(1e-9, time.monotonic() - self._since)
        losses = ", ".join(f"{task} {loss:.4f}" for task, loss in self._recent.items())
        if self._report is not None:
            self._report(self._done, self._steps, note=f"{losses}, {rate:.0f} rows/s")

    def scores(self, *, step: int, dev: Metrics, score: float, best: bool) -> None:
        figures = ", ".join(
            f"{task} {mode} {metric} " + ("undefined" if figure is None else f"{figure:.4f}")
            for task, modes in dev.items()
            for mode, metrics in modes.items()
            for metric, figure in metrics.items()
        )
        print_message(
            f"dev after step {step}: score {score:.4f}{' (best so far)' if best else ''}: {figures}"
        )

    def end_stage(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = self._report = None

    def interrupted(self, step: int) -> None:
        print_message(f"Stopped and saved after step {step}; continue with --resume.")
