"""A recipe trained in memory on some of its rows, to see what it gives for the others."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.data.table import TaskTable
from tercet.recipe import Recipe
from tercet.specs import Floats, Mode
from tercet.training.checkpoint import NoCheckpoints
from tercet.training.distributed import World
from tercet.training.first_vectors import FirstVectors, untouched_stages
from tercet.training.listener import Listener, Silent
from tercet.training.loop import Limit, Loop
from tercet.training.metrics_log import MetricsLog
from tercet.training.preparation import prepare

Rows = NDArray[np.int64]


class Trial:
    """Trains one recipe again and again, always from the same weights.

    first: what keeps the vectors of rows before training, for other trials too
    """

    def __init__(self, recipe: Recipe, *, data: Path, world: World, first: FirstVectors) -> None:
        self.recipe = recipe
        self._first = first
        self._world = world
        self._prepared = prepare(recipe, data=data, world=world, listener=Silent())
        network = self._prepared.network
        self._start = {name: tensor.clone() for name, tensor in network.state_dict().items()}

    @property
    def tables(self) -> Mapping[str, TaskTable]:
        """The rows of every task that trains."""
        return self._prepared.tables

    def encoding_seconds(self, task: str, mode: Mode) -> float:
        """How long the encoder as it is before training took for all rows of a task."""
        return self._first.seconds(self._prepared, task, mode)

    def train(
        self, rows: Mapping[str, Rows], *, listener: Listener, limit: Limit | None = None
    ) -> None:
        """Train on the rows of each task."""
        network = self._prepared.network
        network.load_state_dict(self._start)
        tables = {name: table.take(rows[name]) for name, table in self.tables.items()}
        first = self._first.of(self._prepared)
        losses = replace(
            replace(self._prepared, tables=tables).losses(self._world),
            encoded={(name, mode): first[name, mode].take(rows[name]) for name, mode in first},
        )
        with tempfile.TemporaryFile() as stream:
            Loop(
                self.recipe,
                losses=losses,
                log=MetricsLog(stream, describe=lambda draw: f"a batch of {draw.task}"),
                checkpoints=NoCheckpoints(),
                listener=listener,
                score=None,
                limit=limit,
            ).run(None)

    def outputs(self, task: str, mode: Mode, rows: Rows) -> Floats:
        """The head's outputs for rows of a task, float32 [n, outputs]."""
        engine, stages = self._prepared.engine(bf16=False), self.recipe.stages
        is_untouched = untouched_stages(stages) == len(stages)
        first = self._first.of(self._prepared) if is_untouched else {}
        if (task, mode) in first:
            return first[task, mode].take(rows).outputs(engine, task, mode)
        table = self.tables[task].take(rows)
        return engine.outputs(task, mode, table.columns[: 1 if mode == "single" else 2])
