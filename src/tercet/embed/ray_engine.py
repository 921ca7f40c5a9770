"""The Ray engine of embed and index: a corpus of any number of files, on any number of machines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tercet.data.stream import VECTOR
from tercet.embed.identity import Identity, identify
from tercet.embed.output import check_output, is_array, write_vectors
from tercet.embed.ray_cluster import connected
from tercet.embed.ray_corpus import Corpus
from tercet.embed.ray_parts import Job, Say, embed_parts
from tercet.embed.ray_survey import survey
from tercet.embed.ray_work import Record, Work
from tercet.embed.schema import vectors_schema
from tercet.embed.shared_files import Folder
from tercet.errors import TercetError
from tercet.infer.engine import Progress
from tercet.model import load


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Each part a Parquet file of these columns in a folder."""

    folder: Folder
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
    progress: Progress | None = None,
    say: Say,
) -> int:
    """Embed a file, a folder or a URI of files into one Parquet or npy file; how many rows."""
    check_output(out)
    identity = identify(load(model), model)
    with connected(address):
        corpus = survey(source, column=column, id_column=None)
        schema = vectors_schema(corpus.columns, identity)
        kept = pa.schema([schema.field(VECTOR)]) if is_array(out) else schema
        folder = ray_work_folder(out) / "ray"
        work = Work(folder, data=folder)
        begin(work, corpus, identity, say, columns=kept.names)
        job = Job(model, identity, work, ParquetSink(folder, kept), skip_empty=False)
        records = embed_parts(corpus, job, progress=progress, say=say)
    write_vectors(_batches(work, records), schema, rows=corpus.rows, out=out)
    ray_work_folder(out).remove()
    return corpus.rows


def ray_work_folder(out: str) -> Folder:
    """Where work towards an output lies until it is done."""
    return Folder(f"{Folder.at(out).uri}.work")


def begin(
    work: Work, corpus: Corpus, identity: Identity, say: Say, *, columns: Sequence[str]
) -> None:
    dropped = work.open(corpus=corpus.digest, model=identity.hash, columns=list(columns))
    if dropped:
        say(f"{work.folder.uri}: held parts of other files or another model; they are dropped.")


def _batches(work: Work, records: Sequence[Record]) -> Iterator[pa.RecordBatch]:
    """The rows of all parts in the order of the corpus."""
    for record in records:
        (name,) = record.files
        where = f"{work.data.uri}/{name}"
        if work.whole(record.part) is None:
            raise TercetError(
                f"{where}: is damaged; give the same command again, and this part alone is "
                "embedded again."
            )
        with work.data.open(name) as file:
            yield from pq.read_table(file).to_batches()
