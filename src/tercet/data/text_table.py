"""Texts in memory as Arrow batches, as `stream` gives those of files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tercet.data.columns import find_column
from tercet.data.guess import known_texts
from tercet.data.stream import BATCH, ID, TEXT, TextFile, free_name, rebatched
from tercet.data.tables import to_arrow
from tercet.errors import ArgumentError, TercetError, shorten
from tercet.inputs import column_names, sentences_of
from tercet.specs import Column

NAME = Path("table")
"""What messages call a table in memory."""


class TextSource(Protocol):
    """Texts with ids and further columns, from a file or from memory; see `TextFile`."""

    @property
    def path(self) -> Path: ...
    @property
    def columns(self) -> pa.Schema: ...
    @property
    def rows(self) -> int: ...
    @property
    def digest(self) -> str: ...
    def batches(self, size: int = BATCH, *, start: int = 0) -> Iterator[pa.RecordBatch]: ...


Texts = TextFile | TextSource | str | Path | Iterable[str] | Iterable[Mapping[str, Any]] | Any
"""A path, sentences, or a table: a data frame, an Arrow table, a list of dicts."""


def open_texts(
    texts: Texts, column: Column | None = None, id_column: Column | None = None
) -> TextSource:
    """A file, or texts in memory, as one source.

    column: the text; default: detected from the names of columns, or the only column
    id_column: default: a column called `id`, or else the row's number from 1
    """
    if isinstance(texts, TextFile | TextTable):
        if column is not None or id_column is not None:
            raise ArgumentError(
                "`column` and `id_column` belong to the call that opened the texts.",
                "column",
                "id_column",
            )
        return texts
    if isinstance(texts, str | Path):
        return TextFile.open(texts, column, id_column)
    return TextTable.open(texts, column, id_column)


@dataclass(frozen=True, slots=True)
class TextTable:
    """Texts in memory: a table with id, text, and all other columns.

    digest: sha256 of the rows
    """

    table: pa.Table
    digest: str

    @classmethod
    def open(
        cls, texts: Any, column: Column | None = None, id_column: Column | None = None
    ) -> TextTable:
        """texts: sentences, or a table; columns as in `open_texts`"""
        if column_names(texts) is None and not hasattr(texts, "__arrow_c_stream__"):
            texts = list(texts) if isinstance(texts, Iterable) else texts
        rows = isinstance(texts, list) and bool(texts) and isinstance(texts[0], Mapping)
        if rows or column_names(texts) is not None:
            table = _arranged(to_arrow(texts), column, id_column)
        else:
            table = _arranged(pa.table({TEXT: pa.array(sentences_of(texts), pa.string())}))
        if not len(table):
            raise TercetError(f"{NAME}: contains no rows.")
        return cls(table, _digest(table))

    @property
    def path(self) -> Path:
        return NAME

    @property
    def columns(self) -> pa.Schema:
        return self.table.schema

    @property
    def rows(self) -> int:
        return len(self.table)

    def batches(self, size: int = BATCH, *, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Rows from `start` on, `size` per batch; a text may be empty."""
        yield from rebatched(self.table.to_batches(), size, start)


def _arranged(
    table: pa.Table, column: Column | None = None, id_column: Column | None = None
) -> pa.Table:
    """id and text, both strings, then the other columns."""
    names = table.column_names
    for name, times in Counter(names).items():
        if times > 1:
            raise TercetError(f"{NAME}: two columns are called `{name}`; rename one of them.")
    text = find_column(_text_column(names) if column is None else column, names, path=NAME)
    own = None
    if id_column is not None:
        own = find_column(id_column, names, path=NAME)
    elif ID in names and names.index(ID) != text:
        own = names.index(ID)
    texts = pc.fill_null(pc.utf8_trim_whitespace(_strings(table, text)), "")
    arranged = {ID: _ids(table, own), TEXT: texts}
    for number, name in enumerate(names):
        if number not in (own, text):
            arranged[free_name(name, number, path=NAME)] = _plain(table.column(number))
    fields = [
        pa.field(name, values.type, nullable=name not in (ID, TEXT))
        for name, values in arranged.items()
    ]
    return pa.table(list(arranged.values()), schema=pa.schema(fields))


def _text_column(names: list[str]) -> Column:
    found = known_texts(names) or ()
    if len(found) != 1:
        listed = ", ".join(f"`{name}`" for name in names[:20])
        raise ArgumentError(
            f"{NAME}: cannot tell which of the columns {listed} is the text; select it with "
            "`column`.",
            "column",
        )
    return found[0]


def _ids(table: pa.Table, own: int | None) -> pa.ChunkedArray:
    if own is None:
        return pa.chunked_array(
            [pa.array([str(row + 1) for row in range(len(table))], pa.string())]
        )
    ids = _strings(table, own)
    first: dict[str, int] = {}
    for row, id_ in enumerate(ids.to_pylist(), start=1):
        if id_ is None:
            raise TercetError(f"{NAME} row {row}: no id in column `{table.column_names[own]}`.")
        if id_ in first:
            raise TercetError(
                f"{NAME} row {row}: id {shorten(id_)!r} is already on row {first[id_]}; ids must "
                "be unique."
            )
        first[id_] = row
    return ids


def _strings(table: pa.Table, number: int) -> pa.ChunkedArray:
    values = table.column(number)
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TercetError(
            f"{NAME}: column `{table.column_names[number]}` holds {values.type}, not text or a "
            "number."
        ) from error


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in the one of several types for the same that files give."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    is_text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return values.cast(pa.string() if is_text or pa.types.is_null(kind) else kind)


def _digest(table: pa.Table) -> str:
    found = hashlib.sha256(str(table.schema).encode())
    for batch in rebatched(table.to_batches(), BATCH):
        found.update(pa.concat_batches([batch]).serialize())
    return found.hexdigest()
