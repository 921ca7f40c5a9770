"""The Ray engine of embed and index: a corpus of any number of files, on any number of machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tercet.data.stream import VECTOR
from tercet.errors import TercetError
from tercet.infer.engine import Progress
from tercet.model import load
from tercet.search.embed_files import Folder
from tercet.search.embed_output import check_output, is_array, write_vectors
from tercet.search.identity import Identity, identify
from tercet.search.lance_store import commit_fragments, index_schema, lance
from tercet.search.ray_cluster import connected
from tercet.search.ray_corpus import Corpus
from tercet.search.ray_parts import Job, Say, embed_parts
from tercet.search.ray_sinks import LanceSink, ParquetSink
from tercet.search.ray_survey import check_ids, survey
from tercet.search.ray_work import Record, Work


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
        schema = index_schema(corpus.columns, identity)
        kept = pa.schema([schema.field(VECTOR)]) if is_array(out) else schema
        folder = _work(out) / "ray"
        work = Work(folder, data=folder)
        _begin(work, corpus, identity, say, columns=kept.names)
        job = Job(model, identity, work, ParquetSink(folder, kept), skip_empty=False)
        records = embed_parts(corpus, job, progress=progress, say=say)
    write_vectors(_batches(work, records), schema, rows=corpus.rows, out=out)
    _work(out).remove()
    return corpus.rows


def index_with_ray(
    source: str,
    folder: str,
    *,
    model: str | None,
    column: str | None,
    id_column: str | None,
    address: str | None,
    progress: Progress | None = None,
    say: Say,
) -> int:
    """Make the rows of a file, a folder or a URI of files the content of an index, in one commit.

    Rows without text are left out; how many, is given back.
    """
    identity = identify(load(model), model)
    folder = Folder.at(folder).uri
    with connected(address):
        corpus = survey(source, column=column, id_column=id_column)
        check_ids(corpus)
        schema = index_schema(corpus.columns, identity)
        work = Work(_work(folder) / "ray", data=Folder(folder) / "data")
        _begin(work, corpus, identity, say, columns=schema.names)
        job = Job(model, identity, work, LanceSink(folder, schema), skip_empty=True)
        records = embed_parts(corpus, job, progress=progress, say=say)
    kept = [record for record in records if record.fragment is not None]
    if not kept:
        raise TercetError(f"{source}: no row has a text.")
    from_json = lance().fragment.FragmentMetadata.from_json
    commit_fragments(folder, [from_json(record.fragment) for record in kept], schema)
    _work(folder).remove()
    return sum(record.skipped for record in records)


def _work(out: str) -> Folder:
    """Where work towards an output lies until it is done."""
    return Folder(f"{Folder.at(out).uri}.work")


def _begin(
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
