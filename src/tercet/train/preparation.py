"""From the tables that were read to the rows that train, and what their teachers say of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import read_examples
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.evaluate.temperature import held_out_rows
from tercet.infer.engine import Engine
from tercet.recipe import Recipe
from tercet.train.head_loss import Targets
from tercet.train.holding_out import rows_apart
from tercet.train.listener import Listener
from tercet.train.pairing import make_pairs
from tercet.train.teaching import Teachers

Rows = NDArray[np.int64]


class Preparation:
    """Leaves out rows, makes pairs, and asks teachers, as the tasks of a recipe want it."""

    def __init__(self, recipe: Recipe, *, data: Path, engine: Engine, listener: Listener) -> None:
        """`engine` has the network as it is before training."""
        self._tasks = recipe.tasks
        self._data = data
        self._engine = engine
        self._listener = listener

    def __call__(
        self, tables: Mapping[str, TaskTable]
    ) -> tuple[dict[str, TaskTable], dict[str, Targets]]:
        """The tables to train on, and of tasks with a teacher what it gives for every row."""
        teachers = Teachers(device=self._engine.network.device, listener=self._listener)
        found: dict[str, TaskTable] = {}
        targets: dict[str, Targets] = {}
        for name, table in tables.items():
            found[name], columns = self._choose(name, table)
            if self._tasks[name].teacher is not None:
                targets[name] = self._ask(teachers, name, columns)
        return found, targets

    def _choose(self, name: str, table: TaskTable) -> tuple[TaskTable, list[tuple[int, Rows]]]:
        """The rows that train; and of each of their columns, where its texts stand in the files:
        in which column, at which rows."""
        task = self._tasks[name]
        if task.data.pairs is not None:
            first, second = make_pairs(
                table.columns[0], task.data.pairs, engine=self._engine, listener=self._listener
            )
            self._listener.say(f"{name}: {len(first):,} pairs made of {len(table):,} sentences.")
            return table.paired(first, second), [(0, first), (0, second)]
        rows = self._rows_to_train_on(name, len(table))
        if not len(rows):
            raise TercetError(f"Task `{name}`: `held_out` leaves no row to train on.")
        if len(rows) < len(table):
            self._listener.say(f"{name}: {len(table) - len(rows):,} rows held out.")
            table = table.take(rows)
        return table, [(column, rows) for column in range(len(table.columns))]

    def _rows_to_train_on(self, name: str, count: int) -> Rows:
        """All rows but those held out, or that tell of those held out by the task this is like."""
        task = self._tasks[name]
        rows = np.arange(count)
        if task.held_out > 0.0:
            return np.setdiff1d(rows, held_out_rows(count, share=task.held_out))
        other = self._tasks[task.like] if task.like is not None else task
        if other.held_out == 0.0:
            return rows
        known = read_examples(other, "train", self._data).texts
        kept = held_out_rows(len(known[0]), share=other.held_out)
        held_out = [[column[row] for row in kept.tolist()] for column in known]
        return rows_apart(read_examples(task, "train", self._data).texts, held_out)

    def _ask(self, teachers: Teachers, name: str, columns: list[tuple[int, Rows]]) -> Targets:
        task = self._tasks[name]
        read = read_examples(task, "train", self._data).texts
        # A pair's head reads two columns; vectors are kept of all.
        used = 1 if "single" in task.gears else 2 if task.predicts else len(columns)
        texts = [[read[column][row] for row in rows.tolist()] for column, rows in columns[:used]]
        width = self._engine.network.encoder.config.width
        return teachers.targets(name, task, texts, width=width)
