"""Embedding by Ray: parts of a corpus are read, embedded and written on any free machine.

Ray Data moves the parts and restarts processes that die; the work folder ensures that a part counts
once, and that a new run embeds only what is missing.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tercet.data.stream import TEXT, VECTOR
from tercet.embed.ray_cluster import import_ray
from tercet.embed.ray_corpus import FileCorpus, Share
from tercet.embed.ray_records import PartRecord, PartRecords
from tercet.embed.schema import Identity, vector_array
from tercet.errors import TercetError
from tercet.plugins import load_plugin, loaded_plugins
from tercet.progress import Progress

READERS_PER_MACHINE = 2
Log = Callable[[str], None]
"""Called with each message to the user."""


class Sink(Protocol):
    """Writes the rows of parts."""

    def write(self, rows: pa.Table) -> tuple[dict[str, str], str | None]:
        """Write the rows. Returns the sha256 of each file by name, and Lance's fragment."""
        ...


@dataclass(frozen=True, slots=True)
class PartsTask:
    """What an embedding process needs to know.

    skip_empty: skip rows without text
    plugins: files to import before the model is loaded
    """

    model: str | None
    identity: Identity
    records: PartRecords
    sink: Sink
    skip_empty: bool
    plugins: list[str] = field(default_factory=loaded_plugins)


@dataclass(frozen=True, slots=True)
class ShareReader:
    """Reads shares of a corpus; a part travels as one value, which Ray cannot split."""

    corpus: FileCorpus

    def __call__(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        share = Share(int(row["file"]), int(row["first"]), tuple(map(int, row["parts"])))
        for part, batch in self.corpus.read(share):
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, batch.schema) as writer:
                writer.write_batch(batch)
            yield {"part": part, "rows": stream.getvalue().to_pybytes()}


class Embedder:
    """Embeds and writes parts in a process of its own, with a model that is loaded once."""

    def __init__(self, task: PartsTask) -> None:
        from tercet.model import load

        for file in task.plugins:
            load_plugin(file)
        self.task = task
        identity = task.identity
        self.model = load(task.model, layers=identity.layers, long=identity.long)
        local_hash = Identity.of(self.model).hash
        if local_hash != identity.hash:
            raise TercetError(
                f"The model {identity.name} differs on machine {platform.node()} (hash "
                f"{local_hash[:12]}, not {identity.hash[:12]}); all machines need the same."
            )

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Parts, as the reader gives them, to the number of corpus rows that each completes."""
        parts = batch.column("part").to_pylist()
        streams = batch.column("rows").to_pylist()
        completed = list(map(self._complete, parts, streams))
        return pa.table({"part": parts, "completed": completed})

    def _complete(self, part: int, stream: bytes) -> int:
        record = self.task.records.record(part)
        if record is None:  # else the machine that embedded it died before it could report it
            record = self._embed(part, pa.ipc.open_stream(stream).read_all())
            self.task.records.finish(record)
        return record.rows + record.skipped

    def _embed(self, part: int, rows: pa.Table) -> PartRecord:
        task, count = self.task, len(rows)
        if task.skip_empty:
            rows = rows.filter(pc.not_equal(rows.column(TEXT), ""))
        skipped = count - len(rows)
        if not len(rows):
            return PartRecord(part, 0, skipped, {})
        self.model.long_inputs.clear()
        vectors = self.model.embed(rows.column(TEXT).to_pylist(), width=task.identity.width)
        counted = list(astuple(self.model.long_inputs["texts"]))
        try:
            files, fragment = task.sink.write(rows.append_column(VECTOR, vector_array(vectors)))
        except OSError as error:
            raise TercetError(f"{task.records.data.uri}: cannot be written ({error}).") from error
        return PartRecord(part, len(rows), skipped, files, fragment, counted)


def embed_parts(
    corpus: FileCorpus, task: PartsTask, *, progress: Progress, log: Log
) -> list[PartRecord]:
    """Embed the unfinished parts. Returns the records of all parts, in the corpus's order."""
    finished = _finished(task.records, log)
    rows = corpus.parts()
    wanted = set(range(len(rows))) - finished
    if finished:
        log(f"{len(finished):,} of {len(rows):,} parts are already embedded.")
    done = sum(rows[part] for part in finished)
    progress(done, corpus.rows)
    for completed in _stream(corpus, task, wanted):
        done += completed
        progress(done, corpus.rows)
    return _all_records(task.records, rows)


def _finished(records: PartRecords, log: Log) -> set[int]:
    """The parts that are complete; the records of damaged parts are removed."""
    ray = import_ray()
    recorded = records.recorded()
    check = ray.remote(PartRecords.intact)
    intact = ray.get([check.remote(records, part) for part in recorded])
    finished = {part for part, complete in zip(recorded, intact, strict=True) if complete}
    for part in recorded:
        if part not in finished:
            log(f"Part {part} in {records.folder.uri} is damaged and is embedded again.")
            records.forget(part)
    return finished


def _stream(corpus: FileCorpus, task: PartsTask, wanted: set[int]) -> Iterator[int]:
    """Embed the wanted parts; gives the number of rows of each part as it is finished."""
    ray = import_ray()
    shares = corpus.shares(wanted)
    if not shares:
        return
    resources = ray.cluster_resources()
    gpus, cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    machines = sum(node["Alive"] for node in ray.nodes())
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Every part is its own block, so that any free process can take the next one.
    context.target_max_block_size = 1
    items = [
        {"file": share.file, "first": share.first, "parts": list(share.parts)} for share in shares
    ]
    embedded = (
        ray.data.from_items(items, override_num_blocks=len(items))
        # Reading mostly waits for embedding, so it needs no CPU of its own.
        .flat_map(
            ShareReader(corpus),
            num_cpus=0,
            concurrency=min(READERS_PER_MACHINE * machines, len(items)),
        )
        .map_batches(
            Embedder,
            fn_constructor_args=(task,),
            batch_size=1,
            batch_format="pyarrow",
            concurrency=(1, max(1, min(gpus or cpus, len(wanted)))),
            num_cpus=0 if gpus else 1,
            num_gpus=1 if gpus else None,
        )
    )
    for batch in embedded.iter_batches(batch_size=None, batch_format="pyarrow"):
        yield from batch.column("completed").to_pylist()


def _all_records(records: PartRecords, rows: list[int]) -> list[PartRecord]:
    """The records of all parts; every row of the corpus is in one of them."""
    all_records = []
    for part, expected in enumerate(rows):
        record = records.record(part)
        if record is None:
            raise TercetError(
                f"{records.folder.uri}: part {part} was embedded on another machine but is missing "
                "here; the output must be on a disk or in a store that all machines share."
            )
        count = record.rows + record.skipped
        if count != expected:
            raise TercetError(
                f"{records.folder.uri}: part {part} has {count} rows instead of {expected}; if "
                "the input has changed meanwhile, run it again."
            )
        all_records.append(record)
    return all_records
