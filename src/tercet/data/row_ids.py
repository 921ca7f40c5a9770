"""The ids that a file gives its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tercet.data.columns import is_name
from tercet.data.delimited import Reading
from tercet.data.examples import SplitRows, wanted
from tercet.data.layouts import reading_of, resolve
from tercet.data.readers import column_names, read_rows
from tercet.errors import TercetError
from tercet.specs import DataSpec

ID_COLUMN = "id"


def read_row_ids(rows: SplitRows, data: DataSpec) -> list[str]:
    """The id of each row, from a column `id`; empty where its file has none."""
    resolved = resolve(data)
    reading = reading_of(resolved)
    if reading.header is None and any(map(is_name, wanted(resolved.texts or (), resolved.label))):
        reading = replace(reading, header=True)
    by_file = [_ids_by_line(path, reading) for path in rows.files]
    places = zip(rows.sources.tolist(), rows.lines.tolist(), strict=True)
    return [by_file[source].get(line, "") for source, line in places]


def _ids_by_line(path: Path, reading: Reading) -> dict[int, str]:
    try:
        names = column_names(path, reading)
        name = next((name for name in names if name.lower() == ID_COLUMN), None)
        if name is None:
            return {}
        return {row.line: row.values[0] or "" for row in read_rows(path, [name], reading)}
    except TercetError:
        # An id is a convenience: one that is no text or number must not end an evaluation.
        return {}
