"""A split of a task, tokenised once, ready for batching."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data import changed_pairs
from tercet.data.cache import Stored, cached
from tercet.data.examples import (
    BadRow,
    Examples,
    SplitRows,
    check_columns,
    has_labels,
    is_apart,
    is_labelled,
    read_examples,
)
from tercet.data.files import suffix_of, unit_of
from tercet.data.labels import Labels
from tercet.data.layouts import Split, find_split, resolve
from tercet.errors import TercetError
from tercet.files import cache_folder, sha256_of
from tercet.progress import Progress
from tercet.specs import Long, Mode, TaskSpec
from tercet.text.template import Template
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Pieces, Tokens

FORMAT = 3  # of the cache: increase it when the same files give a different table
CHUNK = 8192  # texts per call of `progress`


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTable(SplitRows):
    """A split of a task as word pieces: those of n texts for each text column."""

    columns: tuple[Pieces, ...]

    def tokens(
        self, rows: NDArray[np.int64], *, mode: Mode, template: Template, max_tokens: int
    ) -> Tokens:
        """Tokens of the chosen rows [n].

        single: the first column, n sentences; bi: column after column, n * columns sentences;
        cross: the first two columns joined, n pairs.
        """
        if mode == "single":
            return template.single(self.columns[0], rows, max_tokens=max_tokens)
        if mode == "bi":
            sides = [template.single(side, rows, max_tokens=max_tokens) for side in self.columns]
            return Tokens.concat(sides)
        if len(self.columns) < 2:
            raise TercetError("Mode `cross` joins two text columns, but this table has one.")
        return template.pair(self.columns[0], self.columns[1], rows, max_tokens=max_tokens)

    def take(self, rows: NDArray[np.int64]) -> TaskTable:
        """The table of these rows [m], in their order."""
        return replace(
            self,
            columns=tuple(column.take(rows) for column in self.columns),
            labels=None if self.labels is None else self.labels[rows],
            lines=self.lines[rows],
            sources=self.sources[rows],
        )

    def joined(
        self, first: NDArray[np.int64], second: NDArray[np.int64], labels: Labels
    ) -> TaskTable:
        """Pairs of the first column's texts at `first` [m] and the second's at `second` [m]."""
        return replace(
            self,
            columns=(self.columns[0].take(first), self.columns[1].take(second)),
            labels=labels,
            lines=self.lines[first],
            sources=self.sources[first],
        )

    def paired(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> TaskTable:
        """Pairs of the first column's texts at `first` [m] and `second` [m], without labels."""
        texts = self.columns[0]
        return replace(
            self,
            columns=(texts.take(first), texts.take(second)),
            labels=None,
            lines=self.lines[first],
            sources=self.sources[first],
        )

    def in_both_orders(self) -> TaskTable:
        """The n rows, then the same with the texts of the first two columns swapped."""
        first, second, *others = self.columns
        swapped = (second, first, *others)
        return replace(
            self,
            columns=tuple(map(Pieces.concat, zip(self.columns, swapped, strict=True))),
            labels=None if self.labels is None else np.concatenate([self.labels, self.labels]),
            lines=np.concatenate([self.lines, self.lines]),
            sources=np.concatenate([self.sources, self.sources]),
        )

    def digest(self) -> str:
        """The sha256 of the word pieces and labels of all rows."""
        found = hashlib.sha256()
        arrays: list[NDArray[Any]] = []
        arrays += [array for column in self.columns for array in (column.ids, column.offsets)]
        arrays += [column.ends for column in self.columns if column.ends is not None]
        for array in (*arrays, *(() if self.labels is None else (self.labels,))):
            found.update(f"{array.dtype}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    def where(self, row: int) -> str:
        """The file and line of a row, for messages."""
        path = self.files[self.sources[row]]
        return f"{path} {unit_of(path)} {self.lines[row]}"


def build_table(
    examples: Examples,
    tokenizer: Tokenizer,
    *,
    limit: int,
    long: Long = "truncate",
    progress: Progress | None = None,
) -> TaskTable:
    """Tokenise examples in memory; at most `limit` pieces of each text are kept, or all of them,
    for windows."""
    read = tokenizer.pieces if long == "truncate" else tokenizer.whole_pieces
    total = len(examples) * len(examples.texts)
    columns = []
    for index, texts in enumerate(examples.texts):
        parts = []
        for start in range(0, len(texts), CHUNK):
            parts.append(read(texts[start : start + CHUNK], limit=limit))
            if progress is not None:
                progress(index * len(texts) + min(start + CHUNK, len(texts)), total)
        columns.append(Pieces.concat(parts))
    return TaskTable(
        columns=tuple(columns),
        labels=examples.labels,
        lines=examples.lines,
        sources=examples.sources,
        files=examples.files,
        skipped=examples.skipped,
        remark=examples.remark,
    )


def load_table(
    task: TaskSpec,
    split: Split,
    data_dir: Path,
    tokenizer: Tokenizer,
    *,
    limit: int,
    long: Long = "truncate",
    cache_dir: Path | None = None,
    progress: Progress | None = None,
    read: Callable[[], Examples] | None = None,
) -> TaskTable:
    """A split's table from the cache; if it is not there, it is made first.

    The cache key covers the content of files, the tokenizer and all settings that matter.
    `read` gives the split's examples; default: `read_examples`.
    """
    check_columns(task, resolve(task.data), split)
    files = find_split(task.data, split, data_dir)

    def make() -> Stored:
        examples = read_examples(task, split, data_dir) if read is None else read()
        return _store(build_table(examples, tokenizer, limit=limit, long=long, progress=progress))

    key = _key(task, split, files, tokenizer, limit=limit, long=long)
    return _restore(cached(cache_dir or cache_folder("tables"), key, make), files)


def _key(
    task: TaskSpec,
    split: Split,
    files: list[Path],
    tokenizer: Tokenizer,
    *,
    limit: int,
    long: Long,
) -> str:
    data = resolve(task.data)
    parts = {
        "format": FORMAT,
        # A file's suffix decides how it is read; its folder does not matter.
        "files": [[suffix_of(path), sha256_of(path)] for path in files],
        "tokenizer": tokenizer.fingerprint,
        "limit": limit,
        "long": long,
        "data": data.model_dump(
            mode="json",
            exclude={"layout", "train", "dev", "pairs", "negatives", "both_orders"},
        ),
        # A share makes two tables of the same files, in which other rows are labelled.
        "split": None if data.dev_share is None else [split, data.dev_share, has_labels(task)],
        "labels": task.labels,
        "range": task.range,
        "multi_label": task.multi_label,
        "labelled": is_labelled(task, split),
        "apart": is_apart(data, split),
        "changes": None if data.changes is None else changed_pairs.FORMAT,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _store(table: TaskTable) -> Stored:
    arrays: dict[str, NDArray[Any]] = {"lines": table.lines, "sources": table.sources}
    if table.labels is not None:
        arrays["labels"] = table.labels
    for index, column in enumerate(table.columns):
        arrays[f"ids-{index}"] = column.ids
        arrays[f"offsets-{index}"] = column.offsets
        arrays[f"lengths-{index}"] = column.lengths
        if column.ends is not None:
            arrays[f"ends-{index}"] = column.ends
    # Files as numbers: their paths may differ next time.
    numbers = {str(path): number for number, path in enumerate(table.files)}
    skipped = [[numbers[bad.file], *astuple(bad)[1:]] for bad in table.skipped]
    notes = {"columns": len(table.columns), "skipped": skipped, "remark": table.remark}
    return Stored(arrays, notes)


def _restore(stored: Stored, files: list[Path]) -> TaskTable:
    arrays = stored.arrays
    return TaskTable(
        columns=tuple(
            Pieces(
                arrays[f"ids-{i}"],
                arrays[f"offsets-{i}"],
                arrays[f"lengths-{i}"],
                arrays.get(f"ends-{i}"),
            )
            for i in range(stored.notes["columns"])
        ),
        labels=arrays.get("labels"),
        lines=arrays["lines"],
        sources=arrays["sources"],
        files=tuple(files),
        skipped=[BadRow(str(files[row[0]]), *row[1:]) for row in stored.notes["skipped"]],
        remark=stored.notes["remark"],
    )
