"""How an index is searched when it is too large to search exactly: an ANN index, measured.

Vectors are parted by k-means and held as 8-bit numbers (IVF_SQ): a search reads the nearest parts
and refines the best by their true vectors. How many parts it has to read is measured at once.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.stream import VECTOR
from tercet.search.exact import top_of_blocks, vector_blocks
from tercet.search.lance_store import ANN_KEY, metadata_of

Floats = NDArray[np.float32]
Progress = Callable[[str, int, int], object]
"""Told what is being done, how much of it is done, and how much there is."""

EXACT_BYTES = 128 << 20
"""Vectors up to this much are searched exactly, in memory."""
KIND = "IVF_SQ"
REFINE = 2
SEEN = 64
"""Rows a part that k-means sees: more take longer and part no better."""
ENOUGH = 0.95
"""Recall of the nearest ten that the low end of the sample's interval has to reach."""
SAMPLE, TOP = 512, 10
STALE = 0.2
"""Share of rows outside of the ANN index from which on it is made anew."""
FRAGMENTS = 32
"""Files, one a change, from which on they are joined."""
KEPT = timedelta(days=1)
"""Older versions are removed, so that readers may go on with theirs for this long."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How an ANN index is searched.

    nprobes: parts that a search reads
    refine: how many times as many rows as asked for are compared by their true vectors
    recall: share of the true nearest ten that it found of a sample
    rows: how many there were then
    """

    kind: str
    parts: int
    nprobes: int
    refine: int
    recall: float
    rows: int


def fits_memory(dataset: Any) -> bool:
    """Whether exact search in memory is quick enough."""
    width = dataset.schema.field(VECTOR).type.list_size
    return bool(dataset.count_rows() * width * 4 <= EXACT_BYTES)


def setting_of(dataset: Any) -> Setting | None:
    stored = metadata_of(dataset).get(ANN_KEY)
    return None if stored is None else Setting(**json.loads(stored))


def phase(progress: Progress | None, what: str) -> Callable[[int, int], object] | None:
    """The progress of one phase."""
    if progress is None:
        return None
    return lambda done, total: progress(what, done, total)


def nearest(
    dataset: Any, queries: Floats, top: int, where: str | None, setting: Setting | None
) -> list[pa.Table]:
    """For each query [width] its nearest rows with a column `_score`, the best first."""
    names = [name for name in dataset.schema.names if name != VECTOR]
    asked: dict[str, Any] = {"column": VECTOR, "k": top, "metric": "cosine"}
    if setting is None:
        asked["use_index"] = False
    else:
        # No upper bound: under a narrow condition more parts are read until there is enough.
        asked |= {"minimum_nprobes": setting.nprobes, "refine_factor": setting.refine}
    tables = []
    for query in queries:
        scanner = dataset.scanner(
            columns=[*names, "_distance"],
            filter=where,
            prefilter=where is not None,
            nearest=asked | {"q": query},
        )
        tables.append(_scored(scanner.to_table()))
    return tables


def _scored(table: pa.Table) -> pa.Table:
    scores = 1.0 - table.column("_distance").to_numpy()
    return table.drop_columns(["_distance"]).append_column("_score", pa.array(scores))


def optimise(dataset: Any, progress: Progress | None = None) -> None:
    """Make the ANN index of a large dataset and measure how it must be searched."""
    if fits_memory(dataset):
        _forget(dataset)
        _tidy(dataset)
        return
    rows = dataset.count_rows()
    parts = int(rows**0.5)
    _forget(dataset)
    if progress is not None:
        progress("ANN index", 0, rows)
    # Without its own progress callback: with one, Lance waits forever in the k-means of a million.
    dataset.create_index(
        VECTOR, KIND, metric="cosine", num_partitions=parts, sample_rate=SEEN, replace=True
    )
    if progress is not None:
        progress("ANN index", rows, rows)
    setting = _measured(dataset, Setting(KIND, parts, 1, REFINE, 0.0, rows), progress)
    if setting is not None:
        dataset.update_schema_metadata({ANN_KEY: json.dumps(asdict(setting))})
    _tidy(dataset)


def settle(dataset: Any, progress: Progress | None = None) -> None:
    """After a change: take new rows into the ANN index, or make it anew when much has changed."""
    setting = setting_of(dataset)
    if setting is None or fits_memory(dataset):
        optimise(dataset, progress)
        return
    rows = dataset.count_rows()
    outside = sum(
        dataset.stats.index_stats(index.name)["num_unindexed_rows"]
        for index in dataset.describe_indices()
    )
    if outside > STALE * rows or abs(rows - setting.rows) > STALE * setting.rows:
        optimise(dataset, progress)
        return
    dataset.optimize.optimize_indices()
    _tidy(dataset)


def _forget(dataset: Any) -> None:
    """Search exactly from here on."""
    if setting_of(dataset) is not None:
        dataset.update_schema_metadata({ANN_KEY: None})


def _tidy(dataset: Any) -> None:
    if len(dataset.get_fragments()) > FRAGMENTS:
        dataset.optimize.compact_files()
    dataset.cleanup_old_versions(older_than=KEPT)


def _measured(dataset: Any, start: Setting, progress: Progress | None) -> Setting | None:
    """The narrowest search that finds enough of a sample's true neighbours; None if none does."""
    rows = dataset.count_rows()
    chosen = np.sort(np.random.default_rng(0).choice(rows, min(SAMPLE, rows), replace=False))
    queries = _vectors_at(dataset, chosen)
    _, truth = top_of_blocks(_told_blocks(dataset, progress), queries, TOP)
    found: dict[int, Setting] = {}

    def enough(nprobes: int) -> bool:
        setting = replace(start, nprobes=nprobes, rows=rows)
        recall, error = _recall(dataset, queries, truth, setting)
        found[nprobes] = replace(setting, recall=round(recall, 4))
        if progress is not None:
            progress(f"recall {recall:.3f} at {nprobes} parts", nprobes, start.parts)
        return recall - 2 * error >= ENOUGH

    widths = list(_widening(start.parts))
    place = bisect_left(widths, True, key=enough)
    return found[widths[place]] if place < len(widths) else None


def _told_blocks(dataset: Any, progress: Progress | None) -> Iterator[tuple[Any, Floats]]:
    rows = dataset.count_rows()
    for places, vectors in vector_blocks(dataset):
        yield places, vectors
        if progress is not None:
            progress("true neighbours of a sample", int(places[-1]) + 1, rows)


def _widening(parts: int) -> Iterator[int]:
    """Numbers of parts to read, by steps of about a fifth, up to all."""
    width = 4.0
    while width < parts:
        yield round(width)
        width *= 2**0.25
    yield parts


def _vectors_at(dataset: Any, places: NDArray[np.int64]) -> Floats:
    width = dataset.schema.field(VECTOR).type.list_size
    column = dataset.take(places.tolist(), columns=[VECTOR]).column(VECTOR).combine_chunks()
    vectors: Floats = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return vectors


def _recall(dataset: Any, queries: Floats, truth: Floats, setting: Setting) -> tuple[float, float]:
    """Share of the nearest that were found, a row as near as the last counting as one of them, and
    the standard error of that share.

    A row of the sample finds itself first, which proves nothing: the others count. It is asked for
    as many as queries ask for, since Lance reads more parts where more are asked for.

    truth: products of each query with its nearest rows, itself the first, float32 [n, TOP]
    """
    shares = []
    tables = nearest(dataset, queries, TOP, None, setting)
    for table, scores in zip(tables, truth, strict=True):
        near = int((table.column("_score").to_numpy() >= scores[-1] - 1e-5).sum())
        shares.append(max(near - 1, 0) / (TOP - 1))
    return float(np.mean(shares)), float(np.std(shares) / len(shares) ** 0.5)
