"""Embedding by Ray: parts of a corpus are read, embedded and written wherever there is room.

Ray Data moves the parts and starts again what dies; the work folder makes sure that a part counts
once, and that a new run embeds only what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tercet.data.stream import TEXT, VECTOR
from tercet.embed.identity import Identity, identify
from tercet.embed.ray_cluster import import_ray
from tercet.embed.ray_corpus import Corpus, Share
from tercet.embed.ray_work import Record, Work
from tercet.embed.schema import vector_array
from tercet.errors import TercetError
from tercet.infer.engine import Progress

READS_A_MACHINE = 2
Say = Callable[[str], None]


class Sink(Protocol):
    """Where the rows of a part go."""

    def write(self, rows: pa.Table) -> tuple[dict[str, str], str | None]:
        """Write id, text, others and vector; the files' sha256 by name, and Lance's fragment."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """What a process that embeds must know.

    skip_empty: whether rows without text are left out
    """

    model: str | None
    identity: Identity
    work: Work
    sink: Sink
    skip_empty: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads shares of a corpus; a part travels as one value, which nothing can cut."""

    corpus: Corpus

    def __call__(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        share = Share(int(row["file"]), int(row["first"]), tuple(map(int, row["parts"])))
        for part, batch in self.corpus.read(share):
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, batch.schema) as writer:
                writer.write_batch(batch)
            yield {"part": part, "rows": stream.getvalue().to_pybytes()}


class Embedder:
    """One model, loaded once, that embeds and writes parts; lives in a process of its own."""

    def __init__(self, job: Job) -> None:
        from tercet.model import load

        self.job = job
        self.model = load(job.model)
        found = identify(self.model, job.model).hash
        if found != job.identity.hash:
            raise TercetError(
                f"The model {job.identity.name} is another one on machine {os.uname().nodename} "
                f"(hash {found[:12]}, not {job.identity.hash[:12]}); give all the same."
            )

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Parts, as the reader gives them, to how many rows of the corpus each settles."""
        parts = batch.column("part").to_pylist()
        streams = batch.column("rows").to_pylist()
        settled = [self._settle(*one) for one in zip(parts, streams, strict=True)]
        return pa.table({"part": parts, "settled": settled})

    def _settle(self, part: int, stream: bytes) -> int:
        record = self.job.work.record(part)
        if record is None:  # else the machine that embedded it died before it could say so
            record = self._embed(part, pa.ipc.open_stream(stream).read_all())
            self.job.work.finish(record)
        return record.rows + record.skipped

    def _embed(self, part: int, rows: pa.Table) -> Record:
        kept = rows.filter(pc.not_equal(rows.column(TEXT), "")) if self.job.skip_empty else rows
        skipped = len(rows) - len(kept)
        if not len(kept):
            return Record(part, 0, skipped, {})
        vectors = self.model.embed(kept.column(TEXT).to_pylist())
        try:
            files, fragment = self.job.sink.write(kept.append_column(VECTOR, vector_array(vectors)))
        except OSError as error:
            raise TercetError(f"{self.job.work.data.uri}: cannot be written ({error}).") from error
        return Record(part, len(kept), skipped, files, fragment)


def embed_parts(corpus: Corpus, job: Job, *, progress: Progress | None, say: Say) -> list[Record]:
    """Embed what is not finished yet; the records of all parts, in the corpus's order."""
    finished = _finished(job.work, say)
    rows = corpus.parts()
    wanted = set(range(len(rows))) - finished
    if finished:
        say(f"{len(finished):,} of {len(rows):,} parts are embedded already.")
    done = sum(rows[part] for part in finished)
    if progress is not None:
        progress(done, corpus.rows)
    for settled in _stream(corpus, job, wanted):
        done += settled
        if progress is not None:
            progress(done, corpus.rows)
    return _all_records(job.work, rows)


def _finished(work: Work, say: Say) -> set[int]:
    """Parts that need no more work; those that were damaged since are forgotten."""
    ray = import_ray()
    recorded = work.recorded()
    check = ray.remote(_is_whole)
    kept = ray.get([check.remote(work, part) for part in recorded])
    finished = {part for part, whole in zip(recorded, kept, strict=True) if whole}
    for part in recorded:
        if part not in finished:
            say(f"Part {part} in {work.folder.uri} is damaged and is embedded again.")
            work.forget(part)
    return finished


def _is_whole(work: Work, part: int) -> bool:
    return work.whole(part) is not None


def _stream(corpus: Corpus, job: Job, wanted: set[int]) -> Iterator[int]:
    """Embed the wanted parts; of each, as it is finished, how many rows it settles."""
    ray = import_ray()
    shares = corpus.shares(wanted)
    if not shares:
        return
    resources = ray.cluster_resources()
    gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    machines = sum(node["Alive"] for node in ray.nodes())
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Every part is a block of its own, so that any process that is free can take the next one.
    context.target_max_block_size = 1
    items = [
        {"file": share.file, "first": share.first, "parts": list(share.parts)} for share in shares
    ]
    embedded = (
        ray.data.from_items(items, override_num_blocks=len(items))
        # Reading waits for embedding all the time, so it needs no processor of its own.
        .flat_map(
            Reader(corpus), num_cpus=0, concurrency=min(READS_A_MACHINE * machines, len(items))
        )
        .map_batches(
            Embedder,
            fn_constructor_args=(job,),
            batch_size=1,
            batch_format="pyarrow",
            concurrency=(1, max(1, min(gpus or cpus, len(wanted)))),
            num_cpus=0 if gpus else 1,
            num_gpus=1 if gpus else None,
        )
    )
    for batch in embedded.iter_batches(batch_size=None, batch_format="pyarrow"):
        yield from batch.column("settled").to_pylist()


def _all_records(work: Work, rows: list[int]) -> list[Record]:
    """The records of all parts; every row of the corpus is in one of them."""
    records = []
    for part, expected in enumerate(rows):
        record = work.record(part)
        if record is None:
            raise TercetError(
                f"{work.folder.uri}: part {part} was embedded on another machine but is not here; "
                "the output must lie on a disk or in a store that all machines share."
            )
        if record.rows + record.skipped != expected:
            raise TercetError(
                f"{work.folder.uri}: part {part} has {record.rows + record.skipped} rows instead "
                f"of {expected}; has the input been changed meanwhile? Give the command again."
            )
        records.append(record)
    return records
