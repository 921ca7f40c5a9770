"""From the tables that were read to the rows that train, and what their teachers give for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tercet.data.examples import Examples
from tercet.data.held_out import Rows, held_out_rows, rows_apart, rows_not_in
from tercet.data.labels import parse_number
from tercet.data.layouts import Split, has_dev
from tercet.data.row_ids import read_label_cells
from tercet.data.sketch import Sketch, SketchBuilder
from tercet.data.table import TaskTable
from tercet.data.unseen import Unseen, read_pairs
from tercet.errors import TercetError
from tercet.infer.engine import Engine
from tercet.recipe import Recipe
from tercet.specs import UnseenSpec
from tercet.training.head_loss import Targets
from tercet.training.listener import Listener
from tercet.training.negatives import make_negatives
from tercet.training.pairing import make_pairs
from tercet.training.teaching import Teachers

Columns = list[tuple[int, Rows]]
"""Where the texts of each column are in the files: in which column, at which rows."""
_REASONS = {
    "evaluation rows": "they are evaluation rows",
    "implying": "with other known duplicates they imply evaluation pairs",
}


class TrainingRows:
    """Leaves out rows, makes pairs and queries teachers, as the tasks of a recipe say."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        read: Callable[[str, Split], Examples],
        engine: Engine,
        listener: Listener,
        data: Path,
    ) -> None:
        """`read` gives the texts of a task's split; `engine` has the encoder as published.

        data: the folder with the sets that must stay unseen
        """
        self._tasks = recipe.tasks
        self._spec = recipe.unseen
        self._data = data
        self._unseen: Unseen | None = None
        self._read = read
        self._engine = engine
        self._listener = listener
        self._columns: dict[str, Columns] = {}
        self.left_out: dict[str, dict[str, int]] = {}
        """Of each task, the rows left out so that others stay unseen."""

    def choose(self, tables: Mapping[str, TaskTable]) -> dict[str, TaskTable]:
        """The tables to train on."""
        if self._spec is not None:
            self._unseen = self._find_unseen(self._spec, tables)
        chosen: dict[str, TaskTable] = {}
        for name, table in tables.items():
            chosen[name], self._columns[name] = self._choose(name, table)
            if self._tasks[name].data.both_orders:
                chosen[name] = chosen[name].in_both_orders()
        return chosen

    def targets(self) -> dict[str, Targets]:
        """What teachers give for the rows that `choose` chose, for each task that has any."""
        teachers = Teachers(device=self._engine.network.device, listener=self._listener)
        return {
            name: self._targets(teachers, name, columns)
            for name, columns in self._columns.items()
            if self._tasks[name].teacher is not None
        }

    def record(self) -> Sketch:
        """The rows that `choose` chose, and the known duplicates among them."""
        builder = SketchBuilder()
        for name, columns in self._columns.items():
            texts = self._texts(name, columns)
            builder.add_rows(texts)
            same = self._duplicates(name, columns)
            if len(same):
                first, second = ([column[row] for row in same.tolist()] for column in texts)
                builder.add_duplicates(first, second)
        return builder.finish()

    def _duplicates(self, name: str, columns: Columns) -> Rows:
        """Places of the pairs labelled 1 among the rows of a task whose labels are 0 and 1."""
        data = self._tasks[name].data
        made = data.pairs is not None or data.changes is not None
        if len(columns) != 2 or made:
            return np.empty(0, np.int64)
        cells = read_label_cells(self._read(name, "train"), data)
        numbers = [] if cells is None else [parse_number(cell) for cell in cells]
        if not set(numbers) <= {0.0, 1.0}:
            return np.empty(0, np.int64)
        if not numbers:
            return np.empty(0, np.int64)
        first, second = (rows for _, rows in columns)
        # The texts of a pair that was added for ranking are from two rows.
        return np.flatnonzero((np.array(numbers)[first] == 1.0) & (first == second))

    def _choose(self, name: str, table: TaskTable) -> tuple[TaskTable, Columns]:
        pairs = self._tasks[name].data.pairs
        columns: Columns = [(place, np.arange(len(table))) for place in range(len(table.columns))]
        if pairs is not None:
            first, second = make_pairs(
                table.columns[0], pairs, engine=self._engine, listener=self._listener
            )
            self._listener.say(f"{name}: {len(first):,} pairs made of {len(table):,} sentences.")
            columns = [(0, first), (0, second)]
        negatives = self._tasks[name].data.negatives
        if negatives is not None:
            first, second = make_negatives(
                table, negatives, engine=self._engine, listener=self._listener
            )
            self._listener.say(f"{name}: {len(first):,} near pairs of class 0 added.")
            every = np.arange(len(table))
            columns = [(0, np.concatenate([every, first])), (1, np.concatenate([every, second]))]
        kept_rows = self._rows_to_train_on(name, columns)
        if not len(kept_rows):
            raise TercetError(
                f"Task `{name}`: no row is left to train on, all are held out or in dev."
            )
        counts = self.left_out.get(name, {})
        for why, count in counts.items():
            if count:
                self._listener.say(f"{name}: {count:,} rows left out: {_REASONS[why]}.")
        left_out = len(columns[0][1]) - len(kept_rows)
        if (held_out := left_out - sum(counts.values())) > 0:
            self._listener.say(f"{name}: {held_out:,} rows held out.")
        columns = [(place, rows[kept_rows]) for place, rows in columns]
        if pairs is not None:
            return table.paired(columns[0][1], columns[1][1]), columns
        if negatives is not None:
            (_, first), (_, second) = columns
            assert table.labels is not None  # since the task learns from them
            labels = np.where(first == second, table.labels[first], 0)
            return table.joined(first, second, labels), columns
        return (table.take(kept_rows) if left_out else table), columns

    def _find_unseen(self, spec: UnseenSpec, tables: Mapping[str, TaskTable]) -> Unseen:
        """The rows that must stay unseen, and the known duplicates of all tasks."""
        scored = [name for name, task in self._tasks.items() if task.answers and has_dev(task.data)]
        duplicates = []
        for name, table in tables.items():
            columns: Columns = [(side, np.arange(len(table))) for side in range(len(table.columns))]
            same = self._duplicates(name, columns)
            if len(same):
                duplicates.append(self._texts(name, [(0, same), (1, same)]))
        return Unseen(
            dev=[self._used(name, self._read(name, "dev").texts) for name in scored if spec.dev],
            sets=[read_pairs(name, self._data) for name in spec.sets],
            duplicates=duplicates,
        )

    def _used(self, name: str, texts: Sequence[list[str]]) -> Sequence[list[str]]:
        """The columns that heads read."""
        return texts[: 1 if "single" in self._tasks[name].modes else 2]

    def _rows_to_train_on(self, name: str, columns: Columns) -> Rows:
        """All rows but those held out, and those that would show rows that must stay unseen."""
        rows = self._rows_apart(name, columns)
        if self._unseen is None or self._spec is None:
            return rows
        chosen = [(place, each[rows]) for place, each in columns]
        texts = self._used(name, self._texts(name, chosen))
        found = self._unseen.left_out(texts, keeps_sets=name in self._spec.keep)
        self.left_out[name] = found.counts()
        return rows[found.fresh]

    def _rows_apart(self, name: str, columns: Columns) -> Rows:
        """All rows but those held out; for a task like another, all but those that reveal rows
        held out by the other, or that are in its dev."""
        task = self._tasks[name]
        rows = np.arange(len(columns[0][1]))
        if task.like is None:
            if task.held_out == 0.0:
                return rows
            return np.setdiff1d(rows, held_out_rows(len(rows), share=task.held_out))
        other = self._tasks[task.like]
        texts = self._used(name, self._texts(name, columns))
        if other.held_out > 0.0:
            known = self._read(task.like, "train").texts
            held_out = held_out_rows(len(known[0]), share=other.held_out).tolist()
            rows = rows_apart(texts, [[column[row] for row in held_out] for column in known])
        if has_dev(other.data):
            rows = np.intersect1d(rows, rows_not_in(texts, self._read(task.like, "dev").texts))
        return rows

    def _texts(self, name: str, columns: Columns) -> list[list[str]]:
        texts = self._read(name, "train").texts
        return [[texts[column][row] for row in rows.tolist()] for column, rows in columns]

    def _targets(self, teachers: Teachers, name: str, columns: Columns) -> Targets:
        task = self._tasks[name]
        # The head of a pair reads two columns; a teacher's vectors are of all.
        used = 1 if "single" in task.modes else 2 if task.predicts else len(columns)
        width = self._engine.network.encoder.config.width
        texts = self._texts(name, columns[:used])
        if task.data.both_orders:
            first, second = texts
            texts = [first + second, second + first]
        return teachers.targets(name, task, texts, width=width)
