"""Mining: the closest pairs of a file, all pairs above a threshold, or groups of duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tercet.data.stream import ID, TEXT, TextFile
from tercet.embed.identity import identify
from tercet.embed.staged import Staged, stage
from tercet.errors import TercetError
from tercet.model import Model
from tercet.search.ann import Progress, phase
from tercet.search.groups import group_rows
from tercet.search.pairs import Records, blocks_of, closest_pairs, pairs_above
from tercet.search.rerank import SAME, TO_DECIDE, Cross

TOP = 1000
SHOWN = 8192
"""Pairs that are judged and handed out at a time."""
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
    """What was found: pairs, or the rows of groups.

    skipped: rows of the file that have no text
    batches: gives the rows; once
    """

    schema: pa.Schema
    count: int
    skipped: int
    batches: Callable[[], Iterator[pa.RecordBatch]]


def mine(
    file: TextFile,
    model: Model,
    folder: Path,
    *,
    top: int | None = None,
    threshold: float | None = None,
    groups: bool = False,
    rerank: bool = False,
    progress: Progress | None = None,
) -> Mined:
    """Find pairs of texts whose vectors are close.

    folder: for work that can be gone on with; it must stay until the batches are read
    top: that many of the closest pairs, the best first; when neither this nor a threshold is given,
        TOP; without it, all above the threshold, by their rows
    groups: the rows of all groups that pairs above the threshold hold together
    rerank: let the cross mode judge pairs: the closest are ordered by it, and groups held together
        by pairs that it takes for the same
    """
    _check(top, threshold, groups=groups)
    cross = Cross(model, TO_DECIDE) if rerank else None
    told = phase(progress, "embedding")
    staged = stage(file, model, identify(model), folder, skip_empty=True, progress=told)
    if staged.rows < 2:
        raise TercetError(f"{file.path}: two texts are needed to make a pair, not {staged.rows}.")
    blocks = blocks_of(staged.vectors())
    told = phase(progress, "comparing")
    if top is None and threshold is not None:
        found = pairs_above(blocks, folder, threshold=threshold, progress=told)
    else:
        chosen = TOP if top is None else top
        found = closest_pairs(blocks, folder, top=chosen, threshold=threshold, progress=told)
    pairs = _Pairs(staged, found, cross, phase(progress, "judging"))
    skipped = file.rows - staged.rows
    if groups:
        return _grouped(pairs, skipped)
    schema = PAIRS if cross is None else PAIRS.insert(1, pa.field("cross", pa.float32()))
    batches = pairs.batches if threshold is not None and top is None else pairs.best
    return Mined(schema, len(found), skipped, batches)


def _check(top: int | None, threshold: float | None, *, groups: bool) -> None:
    if top is not None and top < 1:
        raise TercetError(f"`top` is {top}; it should be at least 1.")
    if threshold is not None and not -1.0 <= threshold <= 1.0:
        raise TercetError(f"`threshold` is {threshold:g}; it should be a cosine, from -1 to 1.")
    if groups and (threshold is None or top is not None):
        raise TercetError("Groups are made of all pairs above a threshold: give it, and no top.")


@dataclass(frozen=True, slots=True)
class _Pairs:
    staged: Staged
    found: Records
    cross: Cross | None
    progress: Callable[[int, int], object] | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The pairs in the order in which they were found."""
        table = self.staged.table(ID, TEXT)
        for start in range(0, len(self.found), SHOWN):
            pairs = self.found[start : start + SHOWN]
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
                if self.progress is not None:
                    self.progress(start + len(pairs), len(self.found))
            names = [name for name in ("score", "cross", *PAIRS.names[1:]) if name in columns]
            yield pa.RecordBatch.from_arrays([columns[name] for name in names], names)

    def best(self) -> Iterator[pa.RecordBatch]:
        """The best first: by the cross mode where it was asked."""
        if self.cross is None or not len(self.found):
            yield from self.batches()
            return
        table = pa.Table.from_batches(self.batches())
        order = np.argsort(-table.column("cross").to_numpy(), kind="stable")
        yield from table.take(pa.array(order)).combine_chunks().to_batches(SHOWN)

    def rows(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """First and second rows of pairs; of those that the cross mode takes for the same."""
        if self.cross is None:
            for start in range(0, len(self.found), 1 << 20):
                pairs = self.found[start : start + (1 << 20)]
                yield pairs["first"], pairs["second"]
            return
        start = 0
        for batch in self.batches():
            pairs = self.found[start : start + len(batch)]
            kept = pairs[batch.column("cross").to_numpy() >= SAME]
            start += len(batch)
            yield kept["first"], kept["second"]


def _grouped(pairs: _Pairs, skipped: int) -> Mined:
    groups = group_rows(pairs.staged.rows, pairs.rows())
    members = np.flatnonzero(groups)
    members = members[np.argsort(groups[members], kind="stable")]

    def batches() -> Iterator[pa.RecordBatch]:
        table = pairs.staged.table(ID, TEXT)
        for start in range(0, len(members), SHOWN):
            rows = members[start : start + SHOWN]
            taken = table.take(pa.array(rows)).combine_chunks()
            (batch,) = (
                taken.add_column(0, "group", pa.array(groups[rows])).combine_chunks().to_batches()
            )
            yield pa.RecordBatch.from_arrays(batch.columns, schema=GROUPS)

    return Mined(GROUPS, len(members), skipped, batches)
