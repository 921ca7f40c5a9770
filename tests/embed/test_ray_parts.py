"""One process of a cluster: what it embeds, what it leaves, what it refuses."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tercet.embed.ray_engine import ParquetSink
from tercet.embed.ray_parts import Embedder, PartsTask
from tercet.embed.ray_records import PartRecords
from tercet.embed.schema import Identity, vectors_schema
from tercet.embed.shared_files import SharedFolder
from tercet.errors import TercetError
from tercet.model import load

TEXTS = ["a quiet film", "", "another one"]
ROWS = pa.table(
    {"id": ["a", "b", "c"], "text": TEXTS},
    schema=pa.schema(
        [pa.field("id", pa.string(), nullable=False), pa.field("text", pa.string(), nullable=False)]
    ),
)


@pytest.fixture
def task(tiny_encoder: Path, tmp_path: Path) -> PartsTask:
    identity = Identity.of(load(tiny_encoder))
    folder = SharedFolder.at(str(tmp_path))
    work = PartRecords(folder, data=folder)
    sink = ParquetSink(folder, vectors_schema(ROWS.schema, identity))
    return PartsTask(str(tiny_encoder), identity, work, sink, skip_empty=False)


def part(number: int) -> pa.Table:
    """The rows as they travel."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return pa.table({"part": [number], "rows": [stream.getvalue().to_pybytes()]})


@pytest.mark.parametrize("skip_empty", [False, True])
def test_a_part_becomes_a_file_and_a_record(
    task: PartsTask, skip_empty: bool, tmp_path: Path
) -> None:
    task = replace(task, skip_empty=skip_empty)
    settled = Embedder(task)(part(5)).to_pydict()
    assert settled == {"part": [5], "completed": [3]}
    assert task.records.intact(5)
    record = task.records.record(5)
    assert record is not None
    assert (record.rows, record.skipped) == ((2, 1) if skip_empty else (3, 0))
    table = pq.read_table(tmp_path / next(iter(record.files)))
    texts = [text for text in TEXTS if text or not skip_empty]
    assert table.column("text").to_pylist() == texts
    vectors = np.stack(table.column("vector").to_numpy())
    np.testing.assert_allclose(vectors, load(str(task.model)).embed(texts), atol=1e-6)


def test_a_part_that_is_finished_is_not_embedded_again(task: PartsTask, tmp_path: Path) -> None:
    embedder = Embedder(task)
    embedder(part(5))
    before = sorted(tmp_path.iterdir())
    assert embedder(part(5)).column("completed").to_pylist() == [3]
    assert sorted(tmp_path.iterdir()) == before


@dataclass(frozen=True, slots=True)
class Full:
    """A disk with no room."""

    def write(self, rows: pa.Table) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_and_nothing_counts(task: PartsTask, tmp_path: Path) -> None:
    embedder = Embedder(replace(task, sink=Full()))
    with pytest.raises(TercetError, match=r"cannot be written.*No space left on device"):
        embedder(part(5))
    assert task.records.recorded() == []


def test_another_model_on_this_machine_is_refused(task: PartsTask) -> None:
    other = task.identity._replace(hash="0" * 64)
    with pytest.raises(TercetError, match="differs on machine"):
        Embedder(replace(task, identity=other))
