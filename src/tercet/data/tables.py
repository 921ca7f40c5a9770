"""Tables in memory, of any library, as Arrow tables and as files that recipes can name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tercet.data.columns import repeated_name
from tercet.data.declared import DECLARATION
from tercet.errors import TercetError
from tercet.files import replace_file

ACCEPTED = (
    "a pandas or polars DataFrame, an Arrow table, a `datasets.Dataset`, a list of dicts or a dict "
    "of columns"
)
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


def to_arrow(table: object) -> pa.Table:
    """An Arrow table of a table of any library, with plain strings and lists.

    table: a pandas or polars DataFrame, an Arrow table or record batch, a `datasets.Dataset`,
        anything else with the Arrow C stream interface, a list of dicts or a dict of columns
    """
    try:
        found = _convert(table)
        names = found.column_names
        if (twice := repeated_name(names)) is not None:
            raise TercetError(f"Two columns of the table are called `{twice}`; rename one of them.")
        plain = pa.table([_plain(column) for column in found.columns], names=names)
        declared = (found.schema.metadata or {}).get(DECLARATION)
        return plain.replace_schema_metadata({DECLARATION: declared} if declared else None)
    except _ARROW_ERRORS as error:
        raise TercetError(f"The table cannot be read: {_reason(error)}.") from error


def write_tables(tables: Mapping[str, object], folder: Path) -> dict[str, str]:
    """Write each table as NAME.parquet, so that recipes can name it; what errors call the files."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise TercetError(f"Table {name!r}: its name may have only letters, digits, _ and -.")
        path = folder / f"{name}.parquet"
        shown[str(path)] = f"Table `{name}`"
        try:
            whole = to_arrow(table)
            with replace_file(path) as writing:
                pq.write_table(whole, writing)
        except TercetError as error:
            raise TercetError(f"Table `{name}`: {error}") from error
        except _ARROW_ERRORS as error:
            raise TercetError(f"Table `{name}`: cannot be written: {_reason(error)}.") from error
    return shown


def _convert(table: object) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    # Libraries are known by their names, so that none of them is imported.
    library, kind = type(table).__module__.partition(".")[0], type(table).__name__
    if library == "pandas" and kind == "DataFrame":
        return _from_pandas(table)
    if library == "datasets" and kind == "Dataset":
        return _from_dataset(table)
    if library == "datasets" and kind == "DatasetDict":
        splits = ", ".join(f"`{name}`" for name in _as_mapping(table))
        raise TercetError(f"A DatasetDict has several tables; choose one of its splits: {splits}.")
    if kind == "LazyFrame":
        raise TercetError("A LazyFrame has no rows yet; call its `collect()` first.")
    if hasattr(table, "__arrow_c_stream__"):
        return _from_stream(table)
    if isinstance(table, Mapping):
        return _from_columns(table)
    if isinstance(table, Sequence) and not isinstance(table, str | bytes):
        return _from_rows(table)
    shown = "None" if table is None else f"a {kind}"
    raise TercetError(f"Expected a table, not {shown}: give {ACCEPTED}.")


def _from_pandas(table: Any) -> pa.Table:
    names = list(map(str, table.columns))
    if (twice := repeated_name(names)) is not None:
        raise TercetError(f"Two columns of the table are called `{twice}`; rename one of them.")
    return pa.Table.from_pandas(table, preserve_index=False)


def _from_dataset(table: Any) -> pa.Table:
    return table.with_format("arrow")[:]


def _as_mapping(table: Any) -> Mapping[str, Any]:
    return dict(table)


def _from_stream(table: object) -> pa.Table:
    try:
        return pa.table(table)
    except pa.ArrowInvalid as error:
        kind = type(table).__name__
        raise TercetError(
            f"Expected a table with named columns, not a {kind} ({_reason(error)}): "
            f"give {ACCEPTED}."
        ) from error


def _from_rows(rows: Sequence[object]) -> pa.Table:
    """A table of dicts; a key that a row lacks is empty there."""
    if not rows:
        raise TercetError("The table has no rows.")
    names: dict[str, None] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise TercetError(
                f"Expected a table of dicts, but row {number} is a {type(row).__name__}: give rows "
                'such as {"text": "...", "label": "..."}, or a dict of columns.'
            )
        names |= dict.fromkeys(row)
    mappings = [row for row in rows if isinstance(row, Mapping)]
    return _from_columns({name: [row.get(name) for row in mappings] for name in names})


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    if not columns:
        raise TercetError("The table has no columns.")
    arrays = {str(name): _column(str(name), values) for name, values in columns.items()}
    (first, length), *others = ((name, len(array)) for name, array in arrays.items())
    for name, other in others:
        if other != length:
            raise TercetError(
                f"The columns of the table differ in length: `{first}` has {length:,} rows, "
                f"`{name}` has {other:,}."
            )
    return pa.table(arrays)


def _column(name: str, values: Any) -> pa.ChunkedArray | pa.Array:
    sized = hasattr(values, "__len__") and not isinstance(values, str | bytes | Mapping)
    if not sized:
        shown = "None" if values is None else f"a {type(values).__name__}"
        raise TercetError(f"Column `{name}` of the table is {shown}, not a list of values.")
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        return pa.array(values, from_pandas=True)  # NaN is a missing value
    except _ARROW_ERRORS as error:
        raise TercetError(
            f"The table cannot be read: column `{name}`: {_reason(error)}."
        ) from error


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without dictionaries, views and large offsets."""
    kind = _plain_type(column.type)
    if not pa.types.is_dictionary(column.type):
        return column.cast(kind)
    # Arrow cannot decode dictionaries of views.
    chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def _reason(error: Exception) -> str:
    return " ".join(map(str, error.args)).strip().rstrip(".").replace("\n", " ")
