"""Approximate search of an index that is too large for exact search.

Vectors are partitioned by k-means and stored as rotated 5-bit numbers (IVF_RQ, RaBitQ): a search
estimates distances in the nearest partitions from the first bit of each number, and from all bits
where the estimate is close, and refines the best rows by their true vectors. The number of
partitions to read is chosen by measured recall when the ANN index is built.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from tercet.data.stream import VECTOR
from tercet.embed.schema import vectors_of
from tercet.errors import TercetError
from tercet.files import parse_json
from tercet.progress import Phases, Progress, silent_phases
from tercet.search.exact import damaged_vectors, top_of_blocks, vector_blocks
from tercet.search.lance_store import ANN_KEY, damaged_metadata, metadata_of
from tercet.specs import Floats

EXACT_BYTES = 128 << 20
"""Vectors up to this size are searched exactly, in memory."""
ROTATED, PLAIN = "IVF_RQ", "IVF_SQ"
"""Numbers of 5 bits after a rotation, or of 8 bits as they are: for widths that Lance does not
rotate, and in indexes of 0.1, which keep theirs until they are rebuilt."""
BITS = 5
ROTATED_WIDTHS = 8
"""Lance rotates vectors whose width is a multiple of this."""
REFINE = 2
ROWS_PER_PARTITION = 64
"""Rows per partition that k-means reads: more take longer and partition no better."""
RECALL = 0.95
"""Recall of the nearest ten that the lower end of the sample's interval has to reach."""
SAMPLE, TOP = 512, 10
STALE = 0.2
"""Share of rows outside the ANN index from which it is rebuilt."""
FRAGMENTS = 32
"""Number of files, one per change, from which they are merged."""
KEEP_VERSIONS = timedelta(days=1)
"""Older versions are removed, so readers may use theirs for this long."""


@dataclass(frozen=True, slots=True)
class AnnSetting:
    """How an ANN index is searched.

    parts: partitions
    nprobes: partitions that a search reads
    refine: factor of additional rows that are compared by their true vectors
    recall: measured recall of the true nearest ten of a sample
    rows: rows of the index at that time
    """

    kind: str
    parts: int
    nprobes: int
    refine: int
    recall: float
    rows: int


def fits_memory(dataset: Any) -> bool:
    """Whether the index is searched exactly, in memory."""
    width = dataset.schema.field(VECTOR).type.list_size
    return bool(dataset.count_rows() * width * 4 <= EXACT_BYTES)


def kind_of(width: int) -> str:
    """The kind of ANN index for vectors of this width."""
    return PLAIN if width % ROTATED_WIDTHS else ROTATED


def setting_of(dataset: Any) -> AnnSetting | None:
    stored = metadata_of(dataset).get(ANN_KEY)
    try:
        return None if stored is None else AnnSetting(**parse_json(stored))
    except (ValueError, TypeError) as error:
        raise TercetError(damaged_metadata(dataset.uri, ANN_KEY)) from error


def nearest(
    dataset: Any, queries: Floats, top: int, where: str | None, setting: AnnSetting | None
) -> list[pa.Table]:
    """The nearest rows of each query [width] with a column `_score`, the best first."""
    count = max(min(top, dataset.count_rows()), 1)
    options: dict[str, Any] = {"column": VECTOR, "k": count, "metric": "cosine"}
    if setting is None:
        options["use_index"] = False
    else:
        # No upper bound: with a narrow filter, partitions are read until there are enough rows.
        options |= {"minimum_nprobes": setting.nprobes, "refine_factor": setting.refine}
    bounded = options
    if setting is not None and setting.kind == ROTATED and where is None and top <= TOP:
        # Without a bound Lance reads on where it sees fit, more for some numbers of rows than for
        # others, so that recall measured on the sample promises too much.
        bounded = options | {"maximum_nprobes": setting.nprobes}
    tables = []
    for query in queries:
        table = _scan(dataset, where, bounded | {"q": query})
        if bounded is not options and len(table) < count:  # most rows of these parts are deleted
            table = _scan(dataset, where, options | {"q": query})
        scores = 1.0 - table.column("_distance").to_numpy()
        if not np.isfinite(scores).all():
            raise damaged_vectors(dataset)
        table = table.drop_columns(["_distance"]).append_column("_score", pa.array(scores))
        tables.append(table)
    return tables


def _scan(dataset: Any, where: str | None, options: dict[str, Any]) -> pa.Table:
    names = [name for name in dataset.schema.names if name != VECTOR]
    scanner = dataset.scanner(
        columns=[*names, "_distance"],
        filter=where,
        prefilter=where is not None,
        nearest=options,
    )
    return scanner.to_table()


def optimise(dataset: Any, phases: Phases = silent_phases) -> None:
    """Build the ANN index of a large dataset and measure how it must be searched."""
    if setting_of(dataset) is not None:  # it is searched exactly from now on
        dataset.update_schema_metadata({ANN_KEY: None})
    if fits_memory(dataset):
        _tidy(dataset)
        return
    rows = dataset.count_rows()
    parts = int(rows**0.5)
    kind = kind_of(dataset.schema.field(VECTOR).type.list_size)
    with phases("building the ANN index") as progress:
        progress(0, rows)
        # Without Lance's own progress callback: with one, its k-means of a million rows hangs.
        dataset.create_index(
            VECTOR,
            kind,
            metric="cosine",
            num_partitions=parts,
            sample_rate=ROWS_PER_PARTITION,
            replace=True,
            **({"num_bits": BITS} if kind == ROTATED else {}),
        )
        progress(rows, rows)
    setting = _measured(dataset, AnnSetting(kind, parts, 1, REFINE, 0.0, rows), phases)
    if setting is not None:
        dataset.update_schema_metadata({ANN_KEY: json.dumps(asdict(setting))})
    _tidy(dataset)


def settle(dataset: Any, phases: Phases = silent_phases) -> None:
    """After a change: add new rows to the ANN index, or rebuild it if much has changed."""
    setting = setting_of(dataset)
    if setting is None or fits_memory(dataset):
        optimise(dataset, phases)
        return
    rows = dataset.count_rows()
    outside = sum(
        dataset.stats.index_stats(index.name)["num_unindexed_rows"]
        for index in dataset.describe_indices()
    )
    if outside > STALE * rows or abs(rows - setting.rows) > STALE * setting.rows:
        optimise(dataset, phases)
        return
    dataset.optimize.optimize_indices()
    _tidy(dataset)


def _tidy(dataset: Any) -> None:
    if len(dataset.get_fragments()) > FRAGMENTS:
        dataset.optimize.compact_files()
    dataset.cleanup_old_versions(older_than=KEEP_VERSIONS)


def _measured(dataset: Any, start: AnnSetting, phases: Phases) -> AnnSetting | None:
    """The narrowest search with enough recall on a sample of rows; None if no search has it."""
    rows = dataset.count_rows()
    chosen = np.sort(np.random.default_rng(0).choice(rows, min(SAMPLE, rows), replace=False))
    sample = dataset.take(chosen.tolist(), columns=[VECTOR]).column(VECTOR)
    queries = vectors_of(sample.combine_chunks())
    with phases("true neighbours of a sample") as progress:
        _, truth = top_of_blocks(_reported_blocks(dataset, progress), queries, TOP)
    measured: dict[int, AnnSetting] = {}
    with phases("measuring recall") as progress:

        def is_enough(nprobes: int) -> bool:
            setting = replace(start, nprobes=nprobes, rows=rows)
            recall, error = _recall(dataset, queries, truth, setting)
            measured[nprobes] = replace(setting, recall=round(recall, 4))
            progress(nprobes, start.parts, note=f"recall {recall:.3f} at {nprobes} partitions")
            return recall - 2 * error >= RECALL

        widths = list(_widening(start.parts))
        place = bisect_left(widths, True, key=is_enough)
    return measured[widths[place]] if place < len(widths) else None


def _reported_blocks(dataset: Any, progress: Progress) -> Iterator[tuple[Any, Floats]]:
    rows = dataset.count_rows()
    for places, vectors in vector_blocks(dataset):
        yield places, vectors
        progress(int(places[-1]) + 1, rows)


def _widening(parts: int) -> Iterator[int]:
    """Numbers of partitions to read, in steps of about a fifth, up to all."""
    width = 4.0
    while width < parts:
        yield round(width)
        width *= 2**0.25
    yield parts


def _recall(
    dataset: Any, queries: Floats, truth: Floats, setting: AnnSetting
) -> tuple[float, float]:
    """Recall of the nearest rows, and its standard error.

    A row as near as the last of them counts. A row of the sample always finds itself, so only the
    others count. TOP rows are requested as in a usual search, since Lance reads more partitions
    for more rows.

    truth: products of each query with its nearest rows, itself first, float32 [n, TOP]
    """
    shares = []
    tables = nearest(dataset, queries, TOP, None, setting)
    for table, scores in zip(tables, truth, strict=True):
        near = int((table.column("_score").to_numpy() >= scores[-1] - 1e-5).sum())
        shares.append(max(near - 1, 0) / (TOP - 1))
    return float(np.mean(shares)), float(np.std(shares) / len(shares) ** 0.5)
