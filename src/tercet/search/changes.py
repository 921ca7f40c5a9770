"""Changes to an index by id, each in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tercet.data.stream import ID
from tercet.data.text_table import TextSource
from tercet.embed.schema import aligned
from tercet.embed.staged import Staged
from tercet.errors import TercetError, nearest, shorten

Change = Callable[[Any, Staged], int]
"""Changes a dataset by staged rows. Returns the number of changed rows."""


def add(dataset: Any, staged: Staged) -> int:
    """Insert rows with new ids; if any id exists by now, nothing is inserted."""
    builder = dataset.merge_insert(ID).when_matched_fail().when_not_matched_insert_all()
    return _merge(builder, dataset, staged)


def update(dataset: Any, staged: Staged) -> int:
    """Replace rows by id, and insert rows with new ids."""
    builder = dataset.merge_insert(ID).when_matched_update_all().when_not_matched_insert_all()
    return _merge(builder, dataset, staged)


def delete(dataset: Any, ids: Sequence[str]) -> int:
    """Delete rows by id."""
    before = dataset.count_rows()
    source = pa.table({ID: pa.array(ids, pa.string())})
    dataset.merge_insert(ID).when_matched_delete().execute(source)
    return int(before - dataset.count_rows())


def check_fits(folder: str, dataset: Any, file: TextSource) -> None:
    """Raise if a file has a column that the index lacks, or one of another type."""
    schema = dataset.schema
    for field in file.columns:
        if field.name not in schema.names:
            raise TercetError(
                f"{file.path}: column `{field.name}` is not in the index {folder}, which has "
                f"{', '.join(f'`{name}`' for name in schema.names)}"
                f"{nearest(field.name, schema.names)}."
            )
        wanted = schema.field(field.name).type
        if not _casts(field.type, wanted):
            raise TercetError(
                f"{file.path}: column `{field.name}` has type {field.type}, but in the "
                f"index {folder} it has type {wanted}."
            )


def check_new(folder: str, dataset: Any, file: TextSource) -> None:
    """Raise if an id of the file is already in the index."""
    present = set(dataset.scanner(columns=[ID]).to_table().column(ID).to_pylist())
    ids = (id_ for batch in file.batches() for id_ in batch.column(ID).to_pylist())
    for id_ in ids:
        if id_ in present:
            raise TercetError(
                f"{file.path}: id {shorten(id_)!r} is already in the index {folder}; update "
                "replaces rows by id."
            )


def _casts(source: pa.DataType, target: pa.DataType) -> bool:
    try:
        pa.array([], source).cast(target)
    except pa.ArrowNotImplementedError:
        return False
    # A number may become text, but text never becomes a number.
    return pa.types.is_string(target) or not pa.types.is_string(source)


def _merge(builder: Any, dataset: Any, staged: Staged) -> int:
    schema = dataset.schema.remove_metadata()
    batches = (aligned(batch, schema) for batch in staged.batches())
    counts = builder.execute(pa.RecordBatchReader.from_batches(schema, batches))
    return int(counts["num_inserted_rows"] + counts["num_updated_rows"])
