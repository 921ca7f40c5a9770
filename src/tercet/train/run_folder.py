"""The folder of a run: recipe, metrics.jsonl, checkpoints, model, and finally the summary."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tercet.errors import ArgumentError
from tercet.recipe import Recipe
from tercet.train.metrics_log import open_metrics

_RECIPE, _METRICS, _SUMMARY = "recipe.toml", "metrics.jsonl", "summary.json"


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
            raise ArgumentError(f"{self.path}: is a file; `out` needs a folder.")
        stored = self.path / _RECIPE
        holds = self.path.is_dir() and any(path != self._aside for path in self.path.iterdir())
        if resume and holds and not stored.is_file():
            raise ArgumentError(
                f"{self.path}: holds files, but no run to resume; use another `out`."
            )
        if not resume and holds:
            raise ArgumentError(
                f"{self.path}: already holds files; use `resume` to continue the run in it, or "
                "another `out`."
            )
        if resume and stored.is_file() and Recipe.load(stored) != self._recipe:
            raise ArgumentError(
                f"{stored}: the run was started with another recipe; use that one, with the same "
                "`changes`, or start a new run without `resume`."
            )

    @property
    def _aside(self) -> Path:
        """Where the recipe is written before it is renamed; a kill may leave it behind."""
        return self.path / f".{_RECIPE}.new"

    def open(self) -> None:
        """Make the folder and put the recipe into it."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._aside.write_text(self._recipe.to_toml(), "utf-8")
        self._aside.rename(self.path / _RECIPE)

    def open_metrics(self, *, length: int, is_main: bool) -> BinaryIO:
        """metrics.jsonl cut to a length; nothing on other processes than the main one."""
        if not is_main:
            return Path(os.devnull).open("wb")
        return open_metrics(self.path / _METRICS, length=length)

    @property
    def is_finished(self) -> bool:
        return (self.path / _SUMMARY).is_file()

    def summary(self) -> dict[str, Any]:
        """The summary of a finished run."""
        found: dict[str, Any] = json.loads((self.path / _SUMMARY).read_text("utf-8"))
        return found

    def finish(self, summary: dict[str, Any], *, kept_steps: Sequence[int]) -> None:
        """Write the summary, which marks the run as finished."""
        whole = {**summary, "stages": self._after_stages(kept_steps)}
        aside = self.path / f".{_SUMMARY}.new"
        aside.write_text(json.dumps(whole, indent=1), "utf-8")
        aside.rename(self.path / _SUMMARY)

    def _after_stages(self, kept_steps: Sequence[int]) -> list[dict[str, Any]]:
        """The scores on dev of the weights that each stage left: what is forgotten, and when."""
        lines = [json.loads(line) for line in (self.path / _METRICS).read_text().splitlines()]
        scored = {line["step"]: line["dev"] for line in lines if "dev" in line}
        return [
            {"stage": stage.name, "step": step, "dev": scored.get(step, {})}
            for stage, step in zip(self._recipe.stages, kept_steps, strict=True)
        ]
