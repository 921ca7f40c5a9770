"""Further cells of the rows that were read, such as ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tercet.data.columns import is_name
from tercet.data.delimited import Reading
from tercet.data.examples import SplitRows, wanted
from tercet.data.layouts import reading_of, resolve
from tercet.data.readers import column_names, read_rows
from tercet.errors import TercetError
from tercet.specs import Column, DataSpec

ID_COLUMN = "id"


def read_row_ids(rows: SplitRows, data: DataSpec) -> list[str]:
    """The id of each row, from a column `id`; empty where its file has none."""
    reading = _reading(data)
    return _at(rows, [_ids_by_line(path, reading) for path in rows.files])


def read_label_cells(rows: SplitRows, data: DataSpec) -> list[str] | None:
    """The label of each row as it is written, also where training does not read it; None where the
    data have no label column."""
    label = resolve(data).label
    if label is None:
        return None
    reading = _reading(data)
    return _at(rows, [_cells_by_line(path, label, reading) for path in rows.files])


def _reading(data: DataSpec) -> Reading:
    resolved = resolve(data)
    reading = reading_of(resolved)
    if reading.header is None and any(map(is_name, wanted(resolved.texts or (), resolved.label))):
        return replace(reading, header=True)
    return reading


def _at(rows: SplitRows, by_file: Sequence[Mapping[int, str]]) -> list[str]:
    """The cell of each row, by its file and line; empty where there is none."""
    places = zip(rows.sources.tolist(), rows.lines.tolist(), strict=True)
    return [by_file[source].get(line, "") for source, line in places]


def _cells_by_line(path: Path, column: Column, reading: Reading) -> dict[int, str]:
    return {row.line: row.values[0] or "" for row in read_rows(path, [column], reading)}


def _ids_by_line(path: Path, reading: Reading) -> dict[int, str]:
    try:
        names = column_names(path, reading)
        name = next((name for name in names if name.lower() == ID_COLUMN), None)
        if name is None:
            return {}
        return _cells_by_line(path, name, reading)
    except TercetError:
        # An id is a convenience: one that is neither text nor a number must not end an evaluation.
        return {}
