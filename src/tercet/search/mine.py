"""Mining: the closest pairs of a file, all pairs above a threshold, or groups of duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tercet.data.stream import ID, TEXT
from tercet.data.text_table import TextSource
from tercet.embed.schema import Identity
from tercet.embed.staged import Staged, stage
from tercet.errors import ArgumentError, TercetError
from tercet.model import Model
from tercet.progress import Phases, Progress, silent, silent_phases
from tercet.search.groups import group_rows
from tercet.search.pairs import Records, blocks_of, closest_pairs, pairs_above
from tercet.search.rerank import SAME, TO_DECIDE, Cross

TOP = 1000
SHOWN = 8192
"""Pairs that are scored and yielded at a time."""
PAIRS = pa.schema(
    [
        ("score", pa.float32()),
        ("first_id", pa.string()),
        ("second_id", pa.string()),
        ("first", pa.string()),
        ("second", pa.string()),
    ]
)
GROUPS = pa.schema([("group", pa.int64()), (ID, pa.string()), (TEXT, pa.string())])


@dataclass(frozen=True, slots=True)
class Mined:
    """The result: pairs, or the rows of groups.

    skipped: rows of the file without text
    batches: gives the rows
    """

    schema: pa.Schema
    count: int
    skipped: int
    batches: Callable[[], Iterator[pa.RecordBatch]]


def mine(
    file: TextSource,
    model: Model,
    folder: Path,
    *,
    top: int | None = None,
    threshold: float | None = None,
    groups: bool = False,
    rerank: bool = False,
    phases: Phases = silent_phases,
) -> Mined:
    """Find pairs of texts whose vectors are close.

    folder: for work that can be resumed; it must exist until the batches are read
    top: the number of closest pairs, the best first; default: all pairs above the threshold, in the
        order of their rows, or TOP without a threshold
    groups: the rows of all groups that are connected by pairs above the threshold
    rerank: score pairs by the cross mode: it orders the closest pairs, and groups are connected by
        pairs that mean the same by it
    """
    _check(top, threshold, groups=groups)
    cross = Cross(model, TO_DECIDE) if rerank else None
    with phases("embedding") as progress:
        staged = stage(file, model, Identity.of(model), folder, skip_empty=True, progress=progress)
    if staged.rows < 2:
        raise TercetError(f"{file.path}: a pair needs two texts, and there are {staged.rows}.")
    blocks = blocks_of(staged.vectors())
    with phases("comparing") as progress:
        if top is None and threshold is not None:
            records = pairs_above(blocks, folder, threshold=threshold, progress=progress)
        else:
            top = TOP if top is None else top
            records = closest_pairs(blocks, folder, top=top, threshold=threshold, progress=progress)
    pairs = _Pairs(staged, records, cross, phases)
    skipped = file.rows - staged.rows
    if groups:
        return _grouped(pairs, skipped)
    schema = PAIRS if cross is None else PAIRS.insert(1, pa.field("cross", pa.float32()))
    batches = pairs.batches if top is None else pairs.best
    return Mined(schema, len(records), skipped, batches)


def _check(top: int | None, threshold: float | None, *, groups: bool) -> None:
    if top is not None and top < 1:
        raise ArgumentError(f"`top` is {top}; it must be at least 1.", "top")
    if threshold is not None and not -1.0 <= threshold <= 1.0:
        raise ArgumentError(
            f"`threshold` is {threshold:g}; it must be a cosine, from -1 to 1.", "threshold"
        )
    if groups and (threshold is None or top is not None):
        raise ArgumentError(
            "`groups` needs `threshold`, and does not go with `top`.", "groups", "threshold", "top"
        )


@dataclass(frozen=True, slots=True)
class _Pairs:
    staged: Staged
    records: Records
    cross: Cross | None
    phases: Phases

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The pairs in the order of their records."""
        with self.phases("reranking") if self.cross else nullcontext(silent) as progress:
            yield from self._batches(progress)

    def _batches(self, progress: Progress) -> Iterator[pa.RecordBatch]:
        table = self.staged.table(ID, TEXT)
        for start in range(0, len(self.records), SHOWN):
            pairs = self.records[start : start + SHOWN]
            first, second = (table.take(pa.array(pairs[side])) for side in ("first", "second"))
            columns = {
                "score": pa.array(pairs["score"]),
                "first_id": first.column(ID).combine_chunks(),
                "second_id": second.column(ID).combine_chunks(),
                "first": first.column(TEXT).combine_chunks(),
                "second": second.column(TEXT).combine_chunks(),
            }
            if self.cross is not None:
                texts = zip(
                    columns["first"].to_pylist(), columns["second"].to_pylist(), strict=True
                )
                columns["cross"] = pa.array(self.cross.scores(list(texts)))
                progress(start + len(pairs), len(self.records))
            names = [name for name in ("score", "cross", *PAIRS.names[1:]) if name in columns]
            yield pa.RecordBatch.from_arrays([columns[name] for name in names], names)

    def best(self) -> Iterator[pa.RecordBatch]:
        """The best first, by the cross mode if pairs are reranked."""
        if self.cross is None or not len(self.records):
            yield from self.batches()
            return
        table = pa.Table.from_batches(self.batches())
        order = np.argsort(-table.column("cross").to_numpy(), kind="stable")
        yield from table.take(pa.array(order)).combine_chunks().to_batches(SHOWN)

    def rows(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """First and second rows of pairs; if pairs are reranked, of those that mean the same."""
        if self.cross is None:
            for start in range(0, len(self.records), 1 << 20):
                pairs = self.records[start : start + (1 << 20)]
                yield pairs["first"], pairs["second"]
            return
        start = 0
        for batch in self.batches():
            pairs = self.records[start : start + len(batch)]
            same = pairs[batch.column("cross").to_numpy() >= SAME]
            start += len(batch)
            yield same["first"], same["second"]


def _grouped(pairs: _Pairs, skipped: int) -> Mined:
    groups = group_rows(pairs.staged.rows, pairs.rows())
    members = np.flatnonzero(groups)
    members = members[np.argsort(groups[members], kind="stable")]

    def batches() -> Iterator[pa.RecordBatch]:
        table = pairs.staged.table(ID, TEXT)
        for start in range(0, len(members), SHOWN):
            rows = members[start : start + SHOWN]
            chosen = table.take(pa.array(rows)).combine_chunks()
            (batch,) = (
                chosen.add_column(0, "group", pa.array(groups[rows])).combine_chunks().to_batches()
            )
            yield pa.RecordBatch.from_arrays(batch.columns, schema=GROUPS)

    return Mined(GROUPS, len(members), skipped, batches)
