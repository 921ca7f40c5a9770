"""An index built by Ray: parts are fragments of a Lance dataset, committed together."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from tercet.embed.identity import identify
from tercet.embed.ray_cluster import connected
from tercet.embed.ray_engine import begin, ray_work_folder
from tercet.embed.ray_parts import Job, Say, embed_parts
from tercet.embed.ray_survey import check_ids, survey
from tercet.embed.ray_work import Work
from tercet.embed.schema import vectors_schema
from tercet.embed.shared_files import Folder
from tercet.errors import TercetError
from tercet.infer.engine import Progress
from tercet.model import load
from tercet.search.lance_store import commit_fragments, lance, telling


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
        schema = vectors_schema(corpus.columns, identity)
        work = Work(ray_work_folder(folder) / "ray", data=Folder(folder) / "data")
        begin(work, corpus, identity, say, columns=schema.names)
        job = Job(model, identity, work, LanceSink(folder, schema), skip_empty=True)
        records = embed_parts(corpus, job, progress=progress, say=say)
    kept = [record for record in records if record.fragment is not None]
    if not kept:
        raise TercetError(f"{source}: no row has a text.")
    from_json = lance().fragment.FragmentMetadata.from_json
    commit_fragments(folder, [from_json(record.fragment) for record in kept], schema)
    ray_work_folder(folder).remove()
    return sum(record.skipped for record in records)


@dataclass(frozen=True, slots=True)
class LanceSink:
    """Each part a fragment of a Lance dataset, which nobody sees until all are committed."""

    folder: str
    schema: pa.Schema

    def write(self, rows: pa.Table) -> tuple[dict[str, str], str]:
        with telling(self.folder):
            (fragment,) = lance().fragment.write_fragments(
                rows.cast(self.schema), self.folder, schema=self.schema, mode="overwrite"
            )
        data = Folder.at(self.folder) / "data"
        files = {file.path: data.sha256(file.path) or "" for file in fragment.files}
        return files, json.dumps(fragment.to_json())
