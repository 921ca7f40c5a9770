"""Tables in memory, of any library, as Arrow tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tercet.errors import TercetError, shorten

# What Arrow calls the row labels of a data frame; they are no column of its own.
_INDEX = re.compile(r"__index_level_\d+__")


def to_arrow(table: Any) -> pa.Table:
    """An Arrow table of a data frame (pandas, polars), an Arrow table, a dataset, a list of dicts
    or a dict of columns; anything with the Arrow C stream interface."""
    try:
        if isinstance(table, pa.Table):
            found = table
        elif isinstance(table, pa.RecordBatch):
            found = pa.Table.from_batches([table])
        elif hasattr(table, "__arrow_c_stream__"):
            found = pa.table(table)
        elif isinstance(table, Mapping):
            found = pa.table({str(name): column for name, column in table.items()})
        elif _is_rows(table):
            names = dict.fromkeys(str(name) for row in table for name in row)
            found = pa.table({name: [row.get(name) for row in table] for name in names})
        else:
            raise TercetError(
                "Expected a table (a data frame, an Arrow table, a dict of columns or a list of "
                f"dicts), not {shorten(repr(table), 60)}."
            )
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TercetError(f"The table cannot be read: {error}.") from error
    kept = [name for name in found.column_names if not _INDEX.fullmatch(name)]
    return found.select(kept).replace_schema_metadata(None)


def _is_rows(table: object) -> bool:
    return isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table)
