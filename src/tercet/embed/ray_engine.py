"""The Ray engine of embedding: a corpus of any number of files, on any number of machines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tercet.data.stream import VECTOR
from tercet.embed.output import check_output, is_array, write_vectors
from tercet.embed.ray_cluster import connected
from tercet.embed.ray_corpus import FileCorpus, survey
from tercet.embed.ray_parts import Log, PartsTask, embed_parts
from tercet.embed.ray_records import PartRecord, PartRecords
from tercet.embed.schema import Identity, vectors_schema
from tercet.embed.shared_files import SharedFolder
from tercet.errors import TercetError
from tercet.model import Model, load
from tercet.progress import Progress, silent
from tercet.specs import Long
from tercet.text.long_inputs import LongInputs


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Writes each part as a Parquet file of these columns."""

    folder: SharedFolder
    schema: pa.Schema

    def write(self, rows: pa.Table) -> tuple[dict[str, str], None]:
        name = f"{uuid.uuid4().hex}.parquet"
        stream = pa.BufferOutputStream()
        pq.write_table(rows.select(self.schema.names).cast(self.schema), stream, compression="zstd")
        return {name: self.folder.write(name, stream.getvalue())}, None


def embed_with_ray(
    source: str,
    out: str,
    *,
    model: str | None,
    column: str | None,
    address: str | None,
    layers: int | None = None,
    width: int | None = None,
    long: Long | None = None,
    progress: Progress = silent,
    log: Log,
) -> int:
    """Embed a file, a folder or a URI of files into one Parquet or npy file.

    Returns the number of rows.
    """
    check_output(out)
    loaded = load(model, layers=layers, long=long)
    identity = Identity.of(loaded, width=width)
    with connected(address):
        corpus = survey(source, column=column, id_column=None)
        schema = vectors_schema(corpus.columns, identity)
        part_schema = pa.schema([schema.field(VECTOR)]) if is_array(out) else schema
        folder = ray_work_folder(out) / "ray"
        records = PartRecords(folder, data=folder)
        start_records(records, corpus, identity, log, columns=part_schema.names)
        sink = ParquetSink(folder, part_schema)
        task = PartsTask(model, identity, records, sink, skip_empty=False)
        parts = embed_parts(corpus, task, progress=progress, log=log)
    log_long(parts, loaded, log)
    write_vectors(_batches(records, parts), schema, rows=corpus.rows, out=out)
    ray_work_folder(out).remove()
    return corpus.rows


def ray_work_folder(out: str) -> SharedFolder:
    """The folder of unfinished work on an output."""
    return SharedFolder(f"{SharedFolder.at(out).uri}.work")


def start_records(
    records: PartRecords, corpus: FileCorpus, identity: Identity, log: Log, *, columns: list[str]
) -> None:
    made_from = {"corpus": corpus.digest, "model": identity.hash, "long": identity.long}
    if records.open(**made_from, width=identity.width, columns=columns):
        log(f"{records.folder.uri}: dropped parts of other files or another model.")


def log_long(parts: Sequence[PartRecord], model: Model, log: Log) -> None:
    """Log how many texts of all parts were too long."""
    for part in parts:
        model.add_count("texts", LongInputs(*part.long))
    for sentence in model.describe_long():
        log(sentence)


def _batches(records: PartRecords, parts: Sequence[PartRecord]) -> Iterator[pa.RecordBatch]:
    """The rows of all parts in the order of the corpus."""
    for part in parts:
        (name,) = part.files
        if not records.intact(part.part):
            raise TercetError(
                f"{records.data.uri}/{name}: is damaged; run it again to embed this part again."
            )
        with records.data.open(name) as file:
            yield from pq.read_table(file).to_batches()
