"""The folder of a run: recipe, metrics.jsonl, checkpoints, model, and finally the summary."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from tercet.errors import ArgumentError, shorten
from tercet.files import is_temporary, read_json_object, release, write_json, write_text
from tercet.recipe import Recipe
from tercet.training.metrics_log import open_metrics, read_metrics

_RECIPE, _METRICS, _SUMMARY = "recipe.toml", "metrics.jsonl", "summary.json"
_INPUTS, _LOCK = "inputs.json", ".lock"


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep other processes and threads out of a run folder; one that came first is an error.

    A thread may enter again what it has entered. The lock ends with the process, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.resolve() / _LOCK, timeout=0, is_singleton=True)
    with suppress(NotImplementedError, OSError):  # not every disk has locks
        try:
            lock.acquire()
        except Timeout:
            raise ArgumentError(
                f"{folder}: another process trains in this folder; wait for it, or use another "
                "`out`.",
                "out",
            ) from None
    try:
        yield
    finally:
        release(lock)


def holds_files(folder: Path) -> bool:
    """Whether a folder holds more than locks and what a writer has not finished."""
    return folder.is_dir() and not all(map(_is_passing, folder.iterdir()))


class RunFolder:
    """The folder that a run writes to, from its main process only."""

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.model = path / "model"
        self.checkpoints = path / "checkpoints"
        self.curves = path / "tensorboard"
        self._recipe = recipe

    def check(self, *, resume: bool) -> None:
        """Refuse a folder that is not this run's own."""
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"{self.path}: is a file; `out` needs a folder.", "out")
        stored = self.path / _RECIPE
        holds = holds_files(self.path)
        if resume and holds and not stored.is_file():
            raise ArgumentError(
                f"{self.path}: holds files, but no run to resume; use another `out`.",
                "out",
            )
        if not resume and holds:
            raise ArgumentError(
                f"{self.path}: already holds files; use `resume` to continue the run in it, or "
                "another `out`.",
                "resume",
                "out",
            )
        if not resume or not stored.is_file():
            return
        other = Recipe.load(stored)
        if not self._recipe.trains_as(other):
            key, was, now = _first_difference(other.training(), self._recipe.training())
            raise ArgumentError(
                f"{stored}: the run was started with another recipe: `{key}` is {was} there and "
                f"{now} here; use that one, with the same `overrides`, or start a new run without "
                "`resume`.",
                "overrides",
                "resume",
            )

    @contextmanager
    def locked(self, *, resume: bool) -> Iterator[None]:
        """Keep other processes out of the folder; one that came first is an error."""
        with only_one(self.path):
            # A process that was faster may have come and gone since the first check.
            self.check(resume=resume)
            yield

    def open(self, digests: Mapping[str, str], *, changed_data: bool) -> None:
        """Put the recipe and the digests of its data into the folder.

        changed_data: whether a run may resume with other data than it was started with
        """
        stored = self.path / _INPUTS
        before = read_json_object(stored) if stored.is_file() else {}
        for name, digest in digests.items():
            if not changed_data and before.get(name, digest) != digest:
                raise ArgumentError(
                    f"{stored}: the rows of {name} have changed since the run was started; use the "
                    "same data, or `changed_data` to resume with these.",
                    "changed_data",
                )
        self.write_recipe(self._recipe)
        write_json(stored, digests)

    def write_recipe(self, recipe: Recipe) -> None:
        self._recipe = recipe
        write_text(self.path / _RECIPE, recipe.to_toml())

    def open_metrics(self, *, length: int, is_main: bool) -> BinaryIO:
        """metrics.jsonl cut to a length; nothing on other processes than the main one."""
        if not is_main:
            return Path(os.devnull).open("wb")
        if length:
            read_metrics(self.path / _METRICS, length=length)
        return open_metrics(self.path / _METRICS, length=length)

    @property
    def is_finished(self) -> bool:
        return (self.path / _SUMMARY).is_file()

    def summary(self) -> dict[str, Any]:
        """The summary of a finished run."""
        return read_json_object(self.path / _SUMMARY)

    def finish(self, summary: dict[str, Any], *, kept_steps: Sequence[int]) -> None:
        """Write the summary, which marks the run as finished."""
        write_json(self.path / _SUMMARY, {**summary, "stages": self._after_stages(kept_steps)})

    def _after_stages(self, kept_steps: Sequence[int]) -> list[dict[str, Any]]:
        """The scores on dev of the weights that each stage left: what is forgotten, and when."""
        lines = read_metrics(self.path / _METRICS)
        scored = {line["step"]: line["dev"] for line in lines if "dev" in line}
        return [
            {"stage": stage.name, "step": step, "dev": scored.get(step, {})}
            for stage, step in zip(self._recipe.stages, kept_steps, strict=True)
        ]


def _first_difference(one: Any, other: Any, *, at: str = "") -> tuple[str, str, str]:
    """The first key of two trees whose values differ, and both values as a message shows them."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = ({str(place): each for place, each in enumerate(v)} for v in (one, other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return at, _shown(one), _shown(other)
    key = next(key for key in [*one, *other] if one.get(key) != other.get(key))
    return _first_difference(one.get(key), other.get(key), at=f"{at}.{key}".lstrip("."))


def _shown(value: Any) -> str:
    return "not set" if value is None else shorten(json.dumps(value))


def _is_passing(path: Path) -> bool:
    """Whether a file is not part of a run: a lock, or what a writer has not finished."""
    return path.name == _LOCK or is_temporary(path)
