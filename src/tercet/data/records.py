"""Whole rows of a file: every column, in order, as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from tercet.data.columns import repeated_name
from tercet.data.delimited import Reading, has_content, open_delimited
from tercet.data.files import kind_of, read_lines, unit_of
from tercet.data.kinds import ARROW, as_kind, as_string, kind_of_value, wider
from tercet.data.readers import (
    TEXT_COLUMN,
    json_objects,
    open_parquet,
    parquet_batches,
    values_of,
)
from tercet.data.stream import rebatched
from tercet.errors import TercetError

Values = list[Any]
"""Of one row; None for a missing value."""


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of a file that has been scanned once.

    columns: names, and types that hold every value
    rows: their number
    """

    path: Path
    columns: pa.Schema
    rows: int
    _reading: Reading

    @classmethod
    def open(cls, path: Path, reading: Reading) -> Records:
        names = _names(path, reading)
        if kind_of(path) == "delimited" and names == [str(n + 1) for n in range(len(names))]:
            names = [f"column_{name}" for name in names]  # a file without a header
        if (twice := repeated_name(names)) is not None:
            raise TercetError(f"{path}: two columns are called `{twice}`; rename one of them.")
        if kind_of(path) == "parquet":
            with open_parquet(path) as parquet:
                return cls(path, parquet.schema_arrow, parquet.metadata.num_rows, reading)
        written = kind_of(path) != "json-lines"
        kinds: list[str | None] = [None] * len(names)
        rows = 0
        for values in _rows(path, reading):
            rows += 1
            for place, value in enumerate(values):
                if value is not None and kinds[place] != "string":
                    kinds[place] = wider(kinds[place], kind_of_value(value, written=written))
        types = [ARROW[kind or "string"] for kind in kinds]
        fields = [pa.field(*field) for field in zip(names, types, strict=True)]
        return cls(path, pa.schema(fields), rows, reading)

    def schema(self, *, as_text: bool) -> pa.Schema:
        """The types of `batches`.

        as_text: for a delimited file. All of a delimited file stays text, so that no digit changes;
            of other files, what is neither a number, a date nor a truth value becomes text.
        """
        if not as_text:
            return self.columns
        typed = kind_of(self.path) in ("json-lines", "parquet")
        return pa.schema(
            [
                pa.field(field.name, field.type if typed and _is_plain(field.type) else pa.string())
                for field in self.columns
            ]
        )

    def batches(self, size: int, *, as_text: bool) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, `size` at a time."""
        schema = self.schema(as_text=as_text)
        if kind_of(self.path) == "parquet":
            with open_parquet(self.path) as parquet:
                for batch in rebatched(parquet_batches(parquet, batch_size=size), size):
                    columns = zip(batch.columns, schema.types, strict=True)
                    yield pa.RecordBatch.from_arrays(
                        [_as_type(column, kind) for column, kind in columns], schema=schema
                    )
            return
        for block in self._blocks(size):
            columns = zip(*block, strict=True)
            arrays = [
                pa.array([as_kind(value, field.type) for value in column], field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def objects(self, size: int) -> Iterator[list[dict[str, Any]]]:
        """The rows by column name, `size` at a time; nested values of JSON lines stay nested."""
        if kind_of(self.path) == "json-lines":
            names = self.columns.names
            for block in self._blocks(size):
                yield [dict(zip(names, values, strict=True)) for values in block]
            return
        for batch in self.batches(size, as_text=False):
            names = batch.schema.names
            columns = [
                values_of(column, name, self.path)
                for column, name in zip(batch.columns, names, strict=True)
            ]
            yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _blocks(self, size: int) -> Iterator[list[Values]]:
        rows = _rows(self.path, self._reading)
        while block := list(islice(rows, size)):
            yield block


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    texts = (None if value is None else as_string(value) for value in column.to_pylist())
    return pa.array(texts, kind)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_temporal(kind)
    )


def _names(path: Path, reading: Reading) -> list[str]:
    kind = kind_of(path)
    if kind == "delimited":
        return open_delimited(path, reading).names
    if kind == "json-lines":
        return list(dict.fromkeys(key for _, row in json_objects(path) for key in row or ()))
    if kind == "parquet":
        with open_parquet(path) as parquet:
            return list(parquet.schema_arrow.names)
    return [TEXT_COLUMN]


def _rows(path: Path, reading: Reading) -> Iterator[Values]:
    """The same rows as `read_rows` gives: blank lines at the end are none."""
    width = len(_names(path, reading))
    blank = 0
    for values in _lines(path, reading):
        if values is None:
            blank += 1
            continue
        for _ in range(blank):
            yield [None] * width
        blank = 0
        yield values


def _lines(path: Path, reading: Reading) -> Iterator[Values | None]:
    """The values of each line; None for a blank one."""
    kind = kind_of(path)
    if kind == "delimited":
        opened = open_delimited(path, reading)
        width = len(opened.names)
        for line, cells in opened.rows:
            if any(cells[width:]):
                raise TercetError(
                    f"{path} {unit_of(path)} {line}: has {len(cells)} cells where {width} are "
                    "expected."
                )
            row: Values = [cell or None for cell in cells[:width]]
            yield row + [None] * (width - len(row)) if has_content(cells) else None
    elif kind == "json-lines":
        names = _names(path, reading)
        for _, row_object in json_objects(path):
            yield None if row_object is None else [row_object.get(name) for name in names]
    else:
        for text in read_lines(path):
            yield [text.rstrip("\r\n")] if text.strip() else None
