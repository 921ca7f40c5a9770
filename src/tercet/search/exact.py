"""Exact search by matrix products: in memory, or block by block over a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.stream import VECTOR
from tercet.embed.schema import vectors_of
from tercet.errors import TercetError
from tercet.specs import Floats

Ints = NDArray[np.int64]
ROW = "_rowid"
BLOCK = 16_384
NEAR_UNIT = 0.01


@dataclass(frozen=True, slots=True)
class InMemory:
    """All rows of a small index.

    rows: the dataset's row ids, uint64 [n]
    vectors: float32 [n, width]
    table: the other columns
    """

    dataset: Any
    rows: NDArray[np.uint64]
    vectors: Floats
    table: pa.Table

    @classmethod
    def load(cls, dataset: Any) -> InMemory:
        names = [name for name in dataset.schema.names if name != VECTOR]
        table = dataset.scanner(columns=names, with_row_id=True, scan_in_order=True).to_table()
        blocks = [vectors for _, vectors in vector_blocks(dataset)]
        width = dataset.schema.field(VECTOR).type.list_size
        vectors = np.concatenate(blocks) if blocks else np.empty((0, width), np.float32)
        rows = table.column(ROW).to_numpy()
        return cls(dataset, rows, vectors, table.drop_columns([ROW]).combine_chunks())

    def nearest(self, queries: Floats, top: int, where: str | None) -> list[pa.Table]:
        """The nearest rows of each query with a column `_score`, the best first."""
        places = np.arange(len(self.rows))
        if where is not None:
            chosen = self.dataset.scanner(columns=[], filter=where, with_row_id=True).to_table()
            places = np.flatnonzero(np.isin(self.rows, chosen.column(ROW).to_numpy()))
        vectors = self.vectors if where is None else self.vectors[places]
        # Memory is taken for as many rows as there are, not for as many as are asked for.
        nearest, scores = top_of_blocks([(places, vectors)], queries, min(top, len(places)))
        tables = []
        for rows, values in zip(nearest, scores, strict=True):
            filled = rows >= 0
            table = self.table.take(pa.array(rows[filled]))
            tables.append(table.append_column("_score", pa.array(values[filled])))
        return tables


def vector_blocks(dataset: Any) -> Iterator[tuple[Ints, Floats]]:
    """Places in the dataset's order int64 [n], and vectors float32 [n, width], block by block."""
    start = 0
    scanner = dataset.scanner(columns=[VECTOR], scan_in_order=True, batch_size=BLOCK)
    for batch in scanner.to_batches():
        vectors = vectors_of(batch.column(VECTOR))
        _check_unit(vectors, dataset)
        yield np.arange(start, start + len(vectors)), vectors
        start += len(vectors)


def _check_unit(vectors: Floats, dataset: Any) -> None:
    """Raise if a vector is neither of length 1 nor empty: a flipped bit makes it outrank all."""
    norms = np.einsum("ij,ij->i", vectors, vectors)
    if not ((np.abs(norms - 1.0) < NEAR_UNIT) | (norms == 0.0)).all():
        raise damaged_vectors(dataset)


def damaged_vectors(dataset: Any) -> TercetError:
    return TercetError(
        f"{dataset.uri}: a vector is not of length 1, so a file of this index is damaged; build "
        "the index again."
    )


def top_of_blocks(
    blocks: Iterable[tuple[Ints, Floats]], queries: Floats, top: int
) -> tuple[Ints, Floats]:
    """The places of the nearest vectors of each query, and the products, [queries, top] each.

    The best come first, earlier rows before later ones with an equal product; -1 pads.
    """
    places = np.full((len(queries), top), -1, np.int64)
    scores = np.full((len(queries), top), -np.inf, np.float32)
    for rows, vectors in blocks:
        products = queries @ vectors.T
        if len(rows) > top:
            best = np.argpartition(-products, top - 1, axis=1)[:, :top]
        else:
            best = np.broadcast_to(np.arange(len(rows)), products.shape)
        both = np.concatenate([scores, np.take_along_axis(products, best, axis=1)], axis=1)
        where = np.concatenate([places, rows[best]], axis=1)
        order = np.lexsort((where, -both), axis=1)[:, :top]
        scores = np.take_along_axis(both, order, axis=1)
        places = np.take_along_axis(where, order, axis=1)
    return places, scores
