"""Writing tables: CSV, TSV, JSON lines or Parquet by the file's suffix, replaced atomically."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tercet.data.spreadsheet import is_text, without_formulas
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


def is_spreadsheet(path: Path) -> bool:
    """Whether a spreadsheet opens the file."""
    return path.suffix in (".csv", ".tsv")


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write a table; the file appears once it is complete.

    Returns the number of cells that a spreadsheet would have run as formulas, and now shows.
    """
    check_suffix(path)
    with replace_file(path) as writing:
        if path.suffix == ".jsonl":
            with writing.open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in json_lines(batches))
            return 0
        if path.suffix == ".parquet":
            import pyarrow.parquet

            with pyarrow.parquet.ParquetWriter(writing, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch.cast(schema))
            return 0
        try:
            return _write_delimited(
                writing, schema, batches, "\t" if path.suffix == ".tsv" else ","
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TercetError(
                f"{path}: cannot hold these columns as text ({error}); write Parquet instead."
            ) from error


def write_objects(path: Path, objects: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines; the file appears once it is complete."""
    with replace_file(path) as writing, writing.open("w", encoding="utf-8") as file:
        for row in objects:
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def json_lines(batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """One JSON object per row; single-precision numbers with six decimals."""
    for batch in batches:
        short = [field.name for field in batch.schema if pa.types.is_float32(field.type)]
        for row in batch.to_pylist():
            for name in short:
                row[name] = round(row[name], 6)
            yield json.dumps(row, ensure_ascii=False)


def _write_delimited(
    path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], delimiter: str
) -> int:
    import pyarrow.csv

    names, formulas = without_formulas(pa.array(schema.names, pa.string()))
    plain = pa.schema(
        [field.with_name(name) for field, name in zip(schema, names.to_pylist(), strict=True)]
    )
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    with pyarrow.csv.CSVWriter(path, plain, write_options=options) as writer:
        for batch in batches:
            columns: list[Any] = []
            for column in batch.cast(schema).columns:
                changed = 0
                if is_text(column.type):
                    column, changed = without_formulas(column)
                formulas += changed
                columns.append(column)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))
    return formulas
