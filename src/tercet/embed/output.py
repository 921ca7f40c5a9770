"""Vectors as one file: Parquet with all columns, or an npy array; complete or absent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tercet.data.stream import VECTOR
from tercet.embed.schema import vectors_of
from tercet.embed.shared_files import is_uri, replace_shared_file
from tercet.errors import ArgumentError, TercetError

PARQUET, ARRAY = ".parquet", ".npy"


def check_output(out: str) -> None:
    """Raise unless vectors can be written there."""
    if PurePosixPath(out).suffix not in (PARQUET, ARRAY):
        raise ArgumentError(f"`out` {out}: give FILE{PARQUET} or FILE{ARRAY}.", "out")
    if is_uri(out):
        return
    if Path(out).is_dir():
        raise ArgumentError(f"`out` {out}: is a folder; give FILE{PARQUET} or FILE{ARRAY}.", "out")
    if not Path(out).absolute().parent.is_dir():
        raise ArgumentError(f"`out` {out}: its folder does not exist.", "out")


def is_array(out: str) -> bool:
    """Whether only the vectors are written, without the other columns."""
    return PurePosixPath(out).suffix == ARRAY


def write_vectors(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, *, rows: int, out: str
) -> None:
    """Write batches that have the schema's columns, `rows` rows in all."""
    write = _write_array if is_array(out) else _write_parquet
    try:
        with replace_shared_file(out) as stream:
            written = write(stream, batches, schema, rows)
            if written != rows:
                raise TercetError(f"{out}: {written} rows were embedded instead of {rows}.")
    except OSError as error:
        raise TercetError(
            f"{out}: cannot be written ({error.strerror or error}); the vectors are kept in "
            f"{out}.work, and running it again resumes from there."
        ) from error


def _write_parquet(
    stream: Any, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int
) -> int:
    written = 0
    texts = [name for name in schema.names if name != VECTOR]
    # Values in vectors hardly repeat: a dictionary would only cost time.
    with pq.ParquetWriter(stream, schema, compression="zstd", use_dictionary=texts) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))
            written += len(batch)
    return written


def _write_array(
    stream: Any, batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int
) -> int:
    """float32 [rows, width]"""
    width = schema.field(VECTOR).type.list_size
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(stream, header)
    written = 0
    for batch in batches:
        stream.write(np.ascontiguousarray(vectors_of(batch.column(VECTOR)), "<f4"))
        written += len(batch)
    return written
