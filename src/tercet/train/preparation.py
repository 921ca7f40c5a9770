"""From the tables that were read to the rows that train, and what their teachers say of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import read_examples
from tercet.data.layouts import split_files
from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.evaluate.scaling import held_out_rows
from tercet.infer.engine import Engine
from tercet.recipe import Recipe
from tercet.train.head_loss import Targets
from tercet.train.holding_out import rows_apart, rows_not_in
from tercet.train.listener import Listener
from tercet.train.pairing import make_pairs
from tercet.train.teaching import Teachers

Rows = NDArray[np.int64]
Columns = list[tuple[int, Rows]]
"""Of each column, where its texts stand in the files: in which column, at which rows."""


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

    def _choose(self, name: str, table: TaskTable) -> tuple[TaskTable, Columns]:
        """The rows that train; and where their texts stand in the files."""
        pairs = self._tasks[name].data.pairs
        columns: Columns = [(place, np.arange(len(table))) for place in range(len(table.columns))]
        if pairs is not None:
            first, second = make_pairs(
                table.columns[0], pairs, engine=self._engine, listener=self._listener
            )
            self._listener.say(f"{name}: {len(first):,} pairs made of {len(table):,} sentences.")
            columns = [(0, first), (0, second)]
        kept = self._rows_to_train_on(name, columns)
        if not len(kept):
            raise TercetError(
                f"Task `{name}`: no row is left to train on, all are held out or stand in dev."
            )
        if (left_out := len(columns[0][1]) - len(kept)) > 0:
            self._listener.say(f"{name}: {left_out:,} rows held out.")
        columns = [(place, rows[kept]) for place, rows in columns]
        if pairs is not None:
            return table.paired(columns[0][1], columns[1][1]), columns
        return (table.take(kept) if left_out else table), columns

    def _rows_to_train_on(self, name: str, columns: Columns) -> Rows:
        """All rows but those held out; of a task that is like another, all but those that tell of
        rows that the other holds out, or that stand in its dev."""
        task = self._tasks[name]
        count = len(columns[0][1])
        if task.like is None:
            every = np.arange(count)
            if task.held_out == 0.0:
                return every
            return np.setdiff1d(every, held_out_rows(count, share=task.held_out))
        other = self._tasks[task.like]
        texts = self._texts(name, columns[: 1 if "single" in task.modes else 2])
        kept = np.arange(count)
        if other.held_out > 0.0:
            known = read_examples(other, "train", self._data).texts
            rows = held_out_rows(len(known[0]), share=other.held_out).tolist()
            kept = rows_apart(texts, [[column[row] for row in rows] for column in known])
        if split_files(other.data, "dev"):
            dev = read_examples(other, "dev", self._data).texts
            kept = np.intersect1d(kept, rows_not_in(texts, dev))
        return kept

    def _texts(self, name: str, columns: Columns) -> list[list[str]]:
        read = read_examples(self._tasks[name], "train", self._data).texts
        return [[read[column][row] for row in rows.tolist()] for column, rows in columns]

    def _ask(self, teachers: Teachers, name: str, columns: Columns) -> Targets:
        task = self._tasks[name]
        # A pair's head reads two columns; vectors are kept of all.
        used = 1 if "single" in task.modes else 2 if task.predicts else len(columns)
        width = self._engine.network.encoder.config.width
        return teachers.targets(name, task, self._texts(name, columns[:used]), width=width)
