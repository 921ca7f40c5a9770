"""`tercet.train`: a recipe trained from Python, on files or tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tercet.data.files import MissingFileError
from tercet.data.tables import write_tables
from tercet.errors import ArgumentError, TercetError, renamed
from tercet.folders.model_card import Metrics
from tercet.model import Model, load
from tercet.recipe import Recipe
from tercet.training.listener import Listener, listener_of
from tercet.training.run import train_recipe

DATA = "data"
"""The folder beside a run that holds the tables it was trained on."""


class TrainedRun:
    """A finished run: its folder, its scores on dev and its model.

    folder: the run folder
    dev: scores by task, mode and metric

    >>> run.model.predict("tickets", ["My parcel is lost."])[0].name
    'Parcels and Delivery'
    """

    def __init__(self, folder: Path, dev: Metrics, *, device: str | None = None) -> None:
        self.folder = folder
        self.dev = dev
        self._device = device

    @cached_property
    def model(self) -> Model:
        """The model, loaded when first used, on the device that it was trained on."""
        return load(self.folder, device=self._device)

    def __repr__(self) -> str:
        lines = [f"TrainedRun in {self.folder}"]
        for task, modes in self.dev.items():
            for mode, metrics in modes.items():
                shown = ", ".join(
                    f"{metric} {'undefined' if value is None else f'{value:.3f}'}"
                    for metric, value in metrics.items()
                )
                lines.append(f"  {task}, mode {mode}: {shown}")
        return "\n".join(lines)


def train(
    recipe: Recipe | str | Path | Mapping[str, Any],
    data: str | Path | Mapping[str, Any] = ".",
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    device: str | None = None,
    progress: bool | None = None,
    listener: Listener | None = None,
) -> TrainedRun:
    """Train a recipe, as `tercet train` does.

        run = tercet.train("mine.toml", data="files", out="runs/mine")
        run = tercet.train("mine.toml", data={"team": frame}, out="runs/mine")

    recipe: a name, a TOML file, a `Recipe`, or its tree of keys
    data: the folder of the recipe's files; or tables by task, which replace the training files of
        these tasks (`team-dev` the dev files of `team`) and are kept in a folder beside the run; a
        tree of keys need not name files then
    out: the run folder; default: runs/RECIPE
    overrides: such as `stages.0.steps=300`
    progress: whether to show it on stderr; default: in notebooks and terminals
    listener: what shows progress instead

    >>> run = tercet.train(result.recipe, data=result.data, out="runs/again")
    >>> run
    TrainedRun in runs/again
    """
    if isinstance(recipe, Mapping) and isinstance(data, Mapping):
        recipe = _with_files(recipe, data)
    chosen = _read(recipe, overrides)
    folder = Path(out) if out is not None else Path("runs") / chosen.name
    if isinstance(data, Mapping):
        chosen = _on_tables(chosen, data)
    try:
        with _placed(data, folder) as place:
            result = train_recipe(
                chosen,
                data=place,
                out=folder,
                resume=resume,
                device=device,
                listener=listener_of(listener, progress=progress),
            )
    except MissingFileError as error:
        if not isinstance(data, Mapping):
            raise
        raise ArgumentError(
            f"`data` has tables for {', '.join(data)}, and the recipe also needs {error.file}: "
            "give tables for all tasks, as `TASK` and `TASK-dev`.",
            "data",
        ) from error
    if result is None:
        raise TercetError("`tercet.train` returns a run on the main process only.")
    return TrainedRun(folder, result.dev, device=device)


def _read(recipe: Recipe | str | Path | Mapping[str, Any], overrides: Sequence[str]) -> Recipe:
    if isinstance(recipe, str | Path):
        return Recipe.load(recipe, overrides)
    if overrides:
        raise ArgumentError("`overrides` go with a recipe's name or file.", "overrides")
    if isinstance(recipe, Recipe):
        return recipe
    return Recipe.from_tree(dict(recipe), where="the recipe")


@contextmanager
def _placed(data: str | Path | Mapping[str, Any], run: Path) -> Iterator[Path]:
    """The data folder; tables in memory are written beside the run."""
    if not isinstance(data, Mapping):
        yield Path(data)
        return
    kept = run.with_name(f"{run.name}-{DATA}")
    if not (kept.is_dir() and run.is_dir() and any(run.iterdir())):
        write_tables(data, kept)
        yield kept
        return
    # Those that a run was started with stay: it is refused, or resumes on equal ones.
    with TemporaryDirectory() as temporary, renamed(write_tables(data, Path(temporary))):
        yield Path(temporary)


def _on_tables(recipe: Recipe, tables: Mapping[str, Any]) -> Recipe:
    """The recipe with tables as the files of its tasks."""
    for task in (name.removesuffix("-dev") for name in tables):
        if task not in recipe.tasks:
            known = ", ".join(recipe.tasks)
            raise TercetError(f"`data` names the task {task!r}; the recipe's tasks are {known}.")
    tree = _with_files(recipe.model_dump(mode="json", exclude_none=True), tables)
    return Recipe.from_tree(tree, where=f"recipe {recipe.name}, on tables")


def _with_files(tree: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's keys, with the files of tables in the data of its tasks."""
    tasks = tree.get("tasks")
    if not isinstance(tasks, Mapping):
        return dict(tree)
    named = dict(tasks)
    for name in tables:
        task = name.removesuffix("-dev")
        keys = named.get(task)
        if isinstance(keys, Mapping) and isinstance(own := keys.get("data", {}), Mapping):
            split = "train" if name == task else "dev"
            named[task] = {**keys, "data": {**own, split: [f"{name}.parquet"]}}
    return {**tree, "tasks": named}
