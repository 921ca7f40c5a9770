"""Files of texts as Arrow batches: id, text, and all other columns with their types."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tercet.data.columns import find_column, find_columns, repeated_name
from tercet.data.delimited import Reading
from tercet.data.files import find_file, kind_of, unit_of
from tercet.data.guess import guess_columns
from tercet.data.kinds import ARROW, as_kind, as_string, as_text, kind_of_value, wider
from tercet.data.readers import (
    column_names,
    json_objects,
    open_parquet,
    parquet_batches,
    read_rows,
)
from tercet.errors import ArgumentError, TercetError, shorten
from tercet.files import sha256_of
from tercet.specs import Column

ID, TEXT, VECTOR = "id", "text", "vector"
BATCH = 8192


class Place(NamedTuple):
    """A column: its name in the source and in the stream."""

    source: str
    name: str


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file of texts that has been scanned once.

    columns: id and text, both strings, then the other columns of the file
    rows: their number, including rows with an empty text
    digest: sha256 of the file and of the selected columns
    """

    path: Path
    columns: pa.Schema
    rows: int
    digest: str
    _places: tuple[Place, ...]
    _reading: Reading

    @classmethod
    def open(
        cls, path: str | Path, column: Column | None = None, id_column: Column | None = None
    ) -> TextFile:
        """Scan a file: types of columns, number of rows, and whether ids are unique.

        column: the text; default: detected from the header, or the only column
        id_column: default: a column called `id`, or else the row's number from 1
        """
        path = find_file(path)
        places, reading = _choose(path, column, id_column)
        columns, rows = _scan(path, places, reading)
        chosen = json.dumps([list(place) for place in places])
        digest = hashlib.sha256(f"{sha256_of(path)} {chosen}".encode()).hexdigest()
        return cls(path, columns, rows, digest, places, reading)

    @property
    def numbered(self) -> bool:
        """Whether ids are row numbers, because there is no id column."""
        return all(place.name != ID for place in self._places)

    def batches(self, size: int = BATCH, *, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on, `size` per batch; a text may be empty."""
        read = _parquet_batches if kind_of(self.path) == "parquet" else _value_batches
        yield from read(self, size, start)


def read_ids(path: str | Path, id_column: Column | None = None) -> list[str]:
    """The ids in a file: in `id_column`, a column called `id`, or the only column."""
    path = find_file(path)
    names = column_names(path)
    if id_column is None:
        id_column = ID if ID in names or len(names) > 1 else 1
    reading = guess_columns(path, texts=[id_column]).reading
    names = column_names(path, reading)
    place = find_column(id_column, names, path=path)
    values = _values(path, [Place(names[place], ID)], reading)
    return [as_string(value) for _, (value,) in values if value is not None]


def _choose(
    path: Path, column: Column | None, id_column: Column | None
) -> tuple[tuple[Place, ...], Reading]:
    """The columns of the stream in order; row numbers as ids are not among them."""
    chosen = guess_columns(path, texts=None if column is None else [column])
    if len(chosen.texts) != 1:
        named = ", ".join(f"`{text}`" for text in chosen.texts)
        raise ArgumentError(
            f"{path}: one text column needed, not {named}; select it with `column`.", "column"
        )
    names = column_names(path, chosen.reading)
    if kind_of(path) == "json-lines":
        names = list(dict.fromkeys(key for _, row in json_objects(path) for key in row or ()))
    if (twice := repeated_name(names)) is not None:
        raise TercetError(f"{path}: two columns are called `{twice}`; rename one of them.")
    text = find_column(chosen.texts[0], names, path=path)
    own = None
    if id_column is not None:
        own = find_column(id_column, names, path=path)
    elif ID in names and names.index(ID) != text:
        own = names.index(ID)
    places = [] if own is None else [Place(names[own], ID)]
    places.append(Place(names[text], TEXT))
    for number, name in enumerate(names):
        if number not in (own, text):
            places.append(Place(name, free_name(name, number, path=path)))
    return tuple(places), chosen.reading


def free_name(name: str, number: int, *, path: Path) -> str:
    if name in (ID, TEXT, VECTOR):
        raise ArgumentError(
            f"{path}: the column name {name!r} is reserved for ids, texts and vectors; rename the "
            "column, or select it with `column` or `id_column`.",
            "column",
            "id_column",
        )
    return f"column_{number + 1}" if not name or name.isdecimal() else name


def _scan(path: Path, places: Sequence[Place], reading: Reading) -> tuple[pa.Schema, int]:
    """The type of each column, and the number of rows."""
    if kind_of(path) == "parquet":
        types, ids, rows = _scan_parquet(path, places)
    else:
        types, ids, rows = _scan_values(path, places, reading)
    if not rows:
        raise TercetError(f"{path}: contains no rows.")
    if ids is not None:
        _check_unique(path, places, reading, ids)
    fields = [
        pa.field(ID, pa.string(), nullable=False),
        pa.field(TEXT, pa.string(), nullable=False),
    ]
    fields += [
        pa.field(place.name, kind)
        for place, kind in zip(places, types, strict=True)
        if place.name not in (ID, TEXT)
    ]
    return pa.schema(fields), rows


def _scan_values(
    path: Path, places: Sequence[Place], reading: Reading
) -> tuple[list[pa.DataType], array[int] | None, int]:
    kinds: list[str | None] = [None] * len(places)
    own = places[0].name == ID
    ids = array("q")
    written = kind_of(path) != "json-lines"
    rows = 0
    for line, values in _values(path, places, reading):
        rows += 1
        if own:
            if values[0] is None:
                raise TercetError(
                    f"{path} {unit_of(path)} {line}: no id in column `{places[0].source}`."
                )
            ids.append(hash(as_string(values[0])))
        for number, value in enumerate(values):
            if value is not None and kinds[number] != "string":
                kinds[number] = wider(kinds[number], kind_of_value(value, written=written))
    return [ARROW[kind or "string"] for kind in kinds], ids if own else None, rows


def _scan_parquet(
    path: Path, places: Sequence[Place]
) -> tuple[list[pa.DataType], array[int] | None, int]:
    with open_parquet(path) as parquet:
        schema = parquet.schema_arrow
        types = [_without_views(schema.field(place.source).type) for place in places]
        rows = parquet.metadata.num_rows
        if places[0].name != ID:
            return types, None, rows
        ids = array("q")
        for batch in parquet_batches(parquet, [places[0].source]):
            values = _texts(batch.column(0), path, places[0].source).to_pylist()
            if None in values:
                row = len(ids) + values.index(None) + 1
                raise TercetError(f"{path} row {row}: no id in column `{places[0].source}`.")
            ids.extend(map(hash, values))
    return types, ids, rows


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Lance and Arrow can take no rows of views."""
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _check_unique(path: Path, places: Sequence[Place], reading: Reading, ids: array[int]) -> None:
    """Ids with equal hashes are read again, to find true duplicates and their lines."""
    hashes, counts = np.unique(np.asarray(ids, np.int64), return_counts=True)
    alike = set(hashes[counts > 1].tolist())
    if not alike:
        return
    seen: dict[str, int] = {}
    for line, values in _values(path, places[:1], reading):
        id_ = as_string(values[0])
        if hash(id_) in alike:
            if id_ in seen:
                unit = unit_of(path)
                raise TercetError(
                    f"{path} {unit} {line}: id {shorten(id_)!r} is already on {unit} {seen[id_]}; "
                    "ids must be unique."
                )
            seen[id_] = line


def _values(
    path: Path, places: Sequence[Place], reading: Reading
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Line and values of each row, as they are written; None for a missing value."""
    sources = [place.source for place in places]
    kind = kind_of(path)
    if kind == "json-lines":
        blank: list[int] = []
        for line, row in json_objects(path):
            if row is None:
                blank.append(line)
                continue
            yield from ((number, [None] * len(sources)) for number in blank)
            blank.clear()
            yield line, [row.get(source) for source in sources]
        return
    if kind == "parquet":
        with open_parquet(path) as parquet:
            line = 0
            for batch in parquet_batches(parquet, sources):
                columns = [_texts(batch.column(source), path, source) for source in sources]
                for values in zip(*(column.to_pylist() for column in columns), strict=True):
                    line += 1
                    yield line, values
        return
    names = column_names(path, reading)
    numbers = [place + 1 for place in find_columns(sources, names, path=path)]
    for record in read_rows(path, numbers, reading):
        if record.problem is not None:
            raise TercetError(f"{path} {unit_of(path)} {record.line}: {record.problem}.")
        yield record.line, record.values


def _value_batches(file: TextFile, size: int, start: int) -> Iterator[pa.RecordBatch]:
    rows = islice(_values(file.path, file._places, file._reading), start, None)
    number = start
    while block := [values for _, values in islice(rows, size)]:
        columns = dict(
            zip((place.name for place in file._places), zip(*block, strict=True), strict=True)
        )
        arrays = []
        for field in file.columns:
            if field.name == ID and ID not in columns:
                values: Sequence[Any] = _numbers(number, len(block))
            elif field.name == TEXT:
                values = [as_text(value) for value in columns[TEXT]]
            else:
                values = [as_kind(value, field.type) for value in columns[field.name]]
            arrays.append(pa.array(values, field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=file.columns)
        number += len(block)


def _numbers(start: int, count: int) -> list[str]:
    return [str(number) for number in range(start + 1, start + count + 1)]


def _parquet_batches(file: TextFile, size: int, start: int) -> Iterator[pa.RecordBatch]:
    sources = {place.name: place.source for place in file._places}
    number = start
    with open_parquet(file.path) as parquet:
        read = parquet_batches(parquet, list(sources.values()), batch_size=size)
        for batch in rebatched(read, size, start):
            arrays = []
            for field in file.columns:
                if field.name not in sources:
                    arrays.append(pa.array(_numbers(number, len(batch)), field.type))
                    continue
                column = batch.column(sources[field.name])
                if field.name in (ID, TEXT):
                    column = _texts(column, file.path, sources[field.name])
                if field.name == TEXT:
                    column = pc.fill_null(pc.utf8_trim_whitespace(column), "")
                arrays.append(column if column.type == field.type else column.cast(field.type))
            number += len(batch)
            yield pa.RecordBatch.from_arrays(arrays, schema=file.columns)


def rebatched(
    batches: Iterable[pa.RecordBatch], size: int, start: int = 0
) -> Iterator[pa.RecordBatch]:
    """Rows from `start` on, exactly `size` per batch except the last, across row groups."""
    waiting: list[pa.RecordBatch] = []
    rows = -start
    for batch in batches:
        rows += len(batch)
        if rows <= 0:
            continue
        waiting.append(batch.slice(max(len(batch) - rows, 0)) if not waiting else batch)
        while rows >= size:
            joined = pa.concat_batches(waiting)
            yield joined.slice(0, size)
            waiting = [joined.slice(size)]
            rows -= size
    if rows > 0:
        yield pa.concat_batches(waiting)


def _texts(values: pa.Array, path: Path, column: str) -> pa.Array:
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TercetError(
            f"{path}: column `{column}` holds {values.type}, not text or a number."
        ) from error
