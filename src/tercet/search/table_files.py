"""Writing tables: CSV, TSV, JSON lines or Parquet by the file's suffix, replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tercet.data.spreadsheet import neutralised
from tercet.errors import TercetError
from tercet.files import replace_file

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")


def check_suffix(path: Path) -> None:
    """Raise unless the suffix is one of a known format."""
    if path.suffix not in SUFFIXES:
        raise TercetError(
            f"{path}: unknown kind of file `{path.suffix}`; it can be {', '.join(SUFFIXES)}."
        )
    if path.is_dir():
        raise TercetError(f"{path}: is a folder; name a file in it.")


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table; the file appears once it is complete."""
    check_suffix(path)
    with replace_file(path) as writing:
        if path.suffix == ".jsonl":
            with writing.open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in json_lines(batches))
            return
        with _writer(path.suffix, writing, schema) as writer:
            for batch in batches:
                whole = batch.cast(schema)
                writer.write_batch(whole if path.suffix == ".parquet" else _inert(whole))


def _inert(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with texts that no spreadsheet runs as formulas."""
    columns = [
        pa.array([None if text is None else neutralised(text) for text in column.to_pylist()])
        if pa.types.is_string(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def json_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """One JSON object per row; single-precision numbers with six decimals."""
    for batch in batches:
        short = [field.name for field in batch.schema if pa.types.is_float32(field.type)]
        for row in batch.to_pylist():
            for name in short:
                row[name] = round(row[name], 6)
            yield json.dumps(row, ensure_ascii=False)


def _writer(suffix: str, path: Path, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(path, schema)
    import pyarrow.csv

    options = pyarrow.csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
    return pyarrow.csv.CSVWriter(path, schema, write_options=options)
