"""The folder of a run: the recipe, metrics.jsonl, checkpoints, the model, and last the summary."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tercet.errors import TercetError
from tercet.files import is_temporary, read_json_object, write_json, write_text
from tercet.recipe import Recipe
from tercet.train.journal import open_journal

_RECIPE, _METRICS, _SUMMARY = "recipe.toml", "metrics.jsonl", "summary.json"


class RunFolder:
    """Where one recipe's run is written; only the process that leads writes."""

    def __init__(self, path: Path, recipe: Recipe) -> None:
        self.path = path
        self.model = path / "model"
        self.checkpoints = path / "checkpoints"
        self.curves = path / "tensorboard"
        self._recipe = recipe

    def check(self, *, resume: bool) -> None:
        """A run never writes into what is not its own."""
        if self.path.exists() and not self.path.is_dir():
            raise TercetError(f"{self.path}: is a file; --out needs a folder.")
        stored = self.path / _RECIPE
        holds = self.path.is_dir() and not all(map(is_temporary, self.path.iterdir()))
        if resume and holds and not stored.is_file():
            raise TercetError(
                f"{self.path}: holds files, but no run to resume; give another --out."
            )
        if not resume and holds:
            raise TercetError(
                f"{self.path}: already holds files; use --resume to go on with the run in it, or "
                "another --out."
            )
        if resume and stored.is_file() and Recipe.load(stored) != self._recipe:
            raise TercetError(
                f"{stored}: the run was begun with another recipe; give that one, with the same "
                "--set, or begin a new run without --resume."
            )

    def open(self) -> None:
        """Make the folder and put the recipe into it."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / _RECIPE, self._recipe.to_toml())

    def journal(self, *, length: int, leads: bool) -> BinaryIO:
        """metrics.jsonl cut to a length, for the process that leads; nothing for others."""
        if not leads:
            return Path(os.devnull).open("wb")
        return open_journal(self.path / _METRICS, length=length)

    @property
    def is_finished(self) -> bool:
        return (self.path / _SUMMARY).is_file()

    def summary(self) -> dict[str, Any]:
        """What a finished run said of itself."""
        return read_json_object(self.path / _SUMMARY)

    def finish(self, summary: dict[str, Any], *, kept: Sequence[int]) -> None:
        """Write the summary, which says that the run is done; `kept`: each stage's last step."""
        write_json(self.path / _SUMMARY, {**summary, "stages": self._after_stages(kept)})

    def _after_stages(self, kept: Sequence[int]) -> list[dict[str, Any]]:
        """What was scored on dev of the weights that each stage left: who forgets, and when."""
        lines = [json.loads(line) for line in (self.path / _METRICS).read_text().splitlines()]
        scored = {line["step"]: line["dev"] for line in lines if "dev" in line}
        return [
            {"stage": stage.name, "step": step, "dev": scored.get(step, {})}
            for stage, step in zip(self._recipe.stages, kept, strict=True)
        ]
