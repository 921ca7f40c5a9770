"""The rows that a search finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tercet.data.stream import ID, TEXT


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that a search found.

    score: the cosine of its vector and the query's
    cross: the score of query and text by the cross mode, from 0 to 1; None without reranking
    columns: the row's other columns

    >>> index.search("inflation", top=1)[0][0].id
    '1'
    """

    id: str
    text: str
    score: float
    cross: float | None
    columns: dict[str, Any]


def hits_of(table: pa.Table) -> list[Hit]:
    """Rows with a column `_score` as hits."""
    rows = table.to_pylist()
    return [Hit(row.pop(ID), row.pop(TEXT), round(row.pop("_score"), 6), None, row) for row in rows]
