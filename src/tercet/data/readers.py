"""Rows of TSV/CSV, JSON lines, Parquet and plain text, each with its line number."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tercet.data.columns import find_column, find_columns, is_name
from tercet.data.delimited import OPEN, Reading, has_content, open_delimited
from tercet.data.files import COMPRESSED, MOST_LINE, kind_of, open_bytes, read_lines
from tercet.errors import TercetError, nearest
from tercet.files import parse_json
from tercet.specs import Column

TEXT_COLUMN = "text"
"""The name of the only column of a plain text file."""
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a character beyond the first 65,536, as JSON writes it."""
LOOK_AHEAD = 100  # JSON lines whose keys count as the file's columns


Spelling = Callable[[object, str, str], str | None]
"""From a typed value, its place and its column to text."""


class FileRow(NamedTuple):
    """Stripped values of the selected columns; None where a value is missing.

    line: the row's first line in the decompressed file, or its number in a Parquet file
    problem: what is wrong with the row as a whole
    blank: whether the line is empty
    """

    line: int
    values: tuple[str | None, ...]
    problem: str | None = None
    blank: bool = False


def read_rows(
    path: Path,
    columns: Sequence[Column],
    reading: Reading = OPEN,
    *,
    lists: Collection[Column] = (),
    any_value: bool = False,
) -> Iterator[FileRow]:
    """Rows of a file, with the values of `columns` in that order.

    lists: columns whose values may be lists in JSON lines and Parquet; these become JSON
    any_value: whether other values, such as dates and objects, are spelled out; default: an error
    """
    kind = kind_of(path)
    if kind == "delimited":
        rows = _delimited_rows(path, columns, reading)
    elif kind == "json-lines":
        rows = _json_rows(path, columns, _spellings(columns, lists, any_value=any_value))
    elif kind == "parquet":
        rows = _parquet_rows(path, columns, _spellings(columns, lists, any_value=any_value))
    else:
        rows = _text_rows(path, columns)
    return _without_blank_end(rows, path)


def column_names(path: Path, reading: Reading = OPEN) -> list[str]:
    """The names of a file's columns, or "1", "2", ... where they have none."""
    kind = kind_of(path)
    if kind == "delimited":
        return open_delimited(path, reading).names
    if kind == "json-lines":
        first = islice(json_objects(path), LOOK_AHEAD)
        return list(dict.fromkeys(key for _, row in first for key in row or ()))
    if kind == "parquet":
        with open_parquet(path) as parquet:
            return list(parquet.schema_arrow.names)
    return [TEXT_COLUMN]


def _without_blank_end(rows: Iterable[FileRow], path: Path) -> Iterator[FileRow]:
    """Blank lines after the last row are dropped; others are rows without values."""
    blank: list[FileRow] = []
    count = 0
    for row in rows:
        if row.blank:
            blank.append(row)
            continue
        yield from blank
        blank.clear()
        count += 1
        yield row
    if not count:
        raise TercetError(f"{path}: contains no rows.")


def _delimited_rows(path: Path, columns: Sequence[Column], reading: Reading) -> Iterator[FileRow]:
    opened = open_delimited(path, reading, named=any(map(is_name, columns)))
    width = len(opened.names)
    places = find_columns(columns, opened.names, path=path)
    line = None
    for line, cells in opened.rows:
        problem = None
        if len(cells) > width and any(cells[width:]):
            problem = f"has {len(cells)} cells where {width} are expected"
        values = [cells[place].strip() or None if place < len(cells) else None for place in places]
        blank = not any(values) and not has_content(cells)
        yield FileRow(line, tuple(values), problem, blank)
    if line is None:
        names = ", ".join(f"`{name}`" for name in opened.names)
        raise TercetError(f"{path}: contains no rows, only a header ({names}).")


def _text_rows(path: Path, columns: Sequence[Column]) -> Iterator[FileRow]:
    for column in columns:
        find_column(column, [TEXT_COLUMN], path=path)
    for number, line in enumerate(read_lines(path), start=1):
        text = line.strip() or None
        yield FileRow(number, (text,) * len(columns), blank=text is None)


def _json_rows(
    path: Path, columns: Sequence[Column], read: Sequence[Spelling]
) -> Iterator[FileRow]:
    names = [str(column) for column in columns]
    wanted, seen = set(names), set[str]()
    for line, row in json_objects(path):
        if row is None:
            yield FileRow(line, (None,) * len(names), blank=True)
            continue
        seen.update(row)
        place = f"{path} line {line}"
        values = [
            as_text(row.get(name), place, name) for as_text, name in zip(read, names, strict=True)
        ]
        yield FileRow(line, tuple(values))
    for name in wanted - seen:
        keys = ", ".join(f"`{key}`" for key in sorted(seen)[:20])
        raise TercetError(
            f"{path}: no line has a key `{name}`; keys are {keys}{nearest(name, seen)}."
        )


def json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The object on each line; None for a blank line."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            yield number, None
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise TercetError(f"{path} line {number}: not valid JSON: {error}.") from error
        if not isinstance(row, dict):
            raise TercetError(f"{path} line {number}: not a JSON object with columns as keys.")
        if SURROGATE.search(line) and not _is_unicode(row):
            raise TercetError(
                f"{path} line {number}: holds half of a surrogate pair, such as \\ud83d without "
                "the other half, which is not a character; remove it."
            )
        yield number, row


def _is_unicode(row: dict[str, Any]) -> bool:
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _parquet_rows(
    path: Path, columns: Sequence[Column], read: Sequence[Spelling]
) -> Iterator[FileRow]:
    with open_parquet(path) as parquet:
        names = list(parquet.schema_arrow.names)
        chosen = [names[find_column(column, names, path=path)] for column in columns]
        number = 0
        for batch in parquet_batches(parquet, list(dict.fromkeys(chosen))):
            values = [values_of(batch.column(name), name, path) for name in chosen]
            for cells in zip(*values, strict=True):
                number += 1
                place = f"{path} row {number}"
                texts = [
                    as_text(cell, place, name)
                    for as_text, cell, name in zip(read, cells, chosen, strict=True)
                ]
                yield FileRow(number, tuple(texts))


def values_of(column: Any, name: str, path: Path) -> list[Any]:
    """The values of a column; times that Python has no value for are texts."""
    import pyarrow as pa

    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        try:
            values = column.cast(pa.string()).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TercetError(
                f"{path}: column `{name}` holds {column.type}, whose values cannot be read: "
                f"{error}."
            ) from error
    return values


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile`; a compressed file is decompressed first."""
    import pyarrow as pa  # slow to import, and needed for few files
    import pyarrow.parquet

    with open_bytes(path) as file:
        try:
            # Parquet is read from its end, and a decompressed stream cannot seek.
            plain = path.suffix not in COMPRESSED
            source = pa.PythonFile(file) if plain else pa.BufferReader(_whole(file, path))
            yield pa.parquet.ParquetFile(source, page_checksum_verification=True)
        except pa.ArrowInvalid as error:
            raise TercetError(f"{path}: not a whole Parquet file ({error}).") from error


def _whole(file: BinaryIO, path: Path) -> bytes:
    """All bytes of a file that was compressed."""
    content = file.read(MOST_LINE + 1)
    if len(content) > MOST_LINE:
        raise TercetError(
            f"{path}: has more than {MOST_LINE:,} bytes when it is decompressed; decompress it "
            "first (Parquet compresses its columns itself)."
        )
    return content


def parquet_batches(
    parquet: Any, columns: Sequence[str] | None = None, **options: Any
) -> Iterator[Any]:
    """The batches of an open Parquet file; a text that is not UTF-8 is an `ArrowInvalid`.

    Arrow itself reads any bytes as text and stumbles over them later.
    """
    for batch in parquet.iter_batches(columns=columns, **options):
        batch.validate(full=True)
        yield batch


def _spellings(
    columns: Sequence[Column], lists: Collection[Column], *, any_value: bool
) -> list[Spelling]:
    """How the values of each column become text."""
    readers: list[Spelling] = [_list_as_text if column in lists else _as_text for column in columns]
    return [partial(_anything_as_text, read) for read in readers] if any_value else readers


def _anything_as_text(read: Spelling, value: object, place: str, column: str) -> str | None:
    """What cannot be read otherwise as JSON; dates as they are written."""
    try:
        return read(value, place, column)
    except TercetError:
        return str(value) if isinstance(value, date | time) else json.dumps(value, default=str)


def _list_as_text(value: object, place: str, column: str) -> str | None:
    """A list of typed values as JSON of their texts; other values as `_as_text` has them."""
    if not isinstance(value, list):
        return _as_text(value, place, column)
    texts = [_as_text(item, place, column) for item in value]
    return json.dumps([text for text in texts if text is not None], ensure_ascii=False)


def _as_text(value: object, place: str, column: str) -> str | None:
    """A typed value as CSV would spell it."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(int(value)) if math.isfinite(value) and value == int(value) else repr(value)
    raise TercetError(
        f"{place}: column `{column}` holds a {type(value).__name__}, not text or a number."
    )
