"""The rows of training files that a recipe reads, where it does not read all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tercet.data.layouts import reading_of
from tercet.data.readers import FileRow, read_rows
from tercet.specs import Column, DataSpec


def rows_where(
    path: Path, columns: Sequence[Column], data: DataSpec, *, lists: Collection[Column] = ()
) -> Iterator[FileRow]:
    """The rows of a training file that match `data.where`, with the values of `columns`.

    data: a resolved data block
    """
    where, reading = data.where, reading_of(data)
    if where is None:
        yield from read_rows(path, columns, reading, lists=lists)
        return
    for row in read_rows(path, [*columns, where.column], reading, lists=lists):
        *values, value = row.values or (None,)
        if row.problem is not None or _matches(value or "", where.matches):
            yield row._replace(values=tuple(values))


def _matches(value: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)
