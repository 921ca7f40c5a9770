"""An index built by Ray: parts are fragments of a Lance dataset, committed together."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from tercet.embed.ray_cluster import connected
from tercet.embed.ray_corpus import check_ids, survey
from tercet.embed.ray_engine import log_long, ray_work_folder, start_records
from tercet.embed.ray_parts import Log, PartsTask, embed_parts
from tercet.embed.ray_records import PartRecords
from tercet.embed.schema import Identity, vectors_schema
from tercet.embed.shared_files import SharedFolder
from tercet.errors import TercetError
from tercet.model import load
from tercet.progress import Progress, silent
from tercet.search.lance_store import commit_fragments, lance, lance_errors
from tercet.specs import Long


@dataclass(frozen=True, slots=True)
class LanceSink:
    """Writes each part as a fragment of a Lance dataset, invisible until all are committed."""

    folder: str
    schema: pa.Schema

    def write(self, rows: pa.Table) -> tuple[dict[str, str], str]:
        with lance_errors(self.folder):
            (fragment,) = lance().fragment.write_fragments(
                rows.cast(self.schema), self.folder, schema=self.schema, mode="overwrite"
            )
        data = SharedFolder.at(self.folder) / "data"
        files = {file.path: data.sha256(file.path) or "" for file in fragment.files}
        return files, json.dumps(fragment.to_json())


def index_with_ray(
    source: str,
    folder: str,
    *,
    model: str | None,
    column: str | None,
    id_column: str | None,
    address: str | None,
    layers: int | None = None,
    width: int | None = None,
    long: Long | None = None,
    progress: Progress = silent,
    log: Log,
) -> int:
    """Make the rows of a file, a folder or a URI of files the content of an index, in one commit.

    Rows without text are skipped. Returns their number.
    """
    loaded = load(model, layers=layers, long=long)
    identity = Identity.of(loaded, width=width)
    folder = SharedFolder.at(folder).uri
    with connected(address):
        corpus = survey(source, column=column, id_column=id_column)
        check_ids(corpus)
        schema = vectors_schema(corpus.columns, identity)
        records = PartRecords(ray_work_folder(folder) / "ray", data=SharedFolder(folder) / "data")
        start_records(records, corpus, identity, log, columns=schema.names)
        task = PartsTask(model, identity, records, LanceSink(folder, schema), skip_empty=True)
        parts = embed_parts(corpus, task, progress=progress, log=log)
    log_long(parts, loaded, log)
    fragments = [part.fragment for part in parts if part.fragment is not None]
    if not fragments:
        raise TercetError(f"{source}: no row has a text.")
    from_json = lance().fragment.FragmentMetadata.from_json
    commit_fragments(folder, [from_json(fragment) for fragment in fragments], schema)
    ray_work_folder(folder).remove()
    return sum(part.skipped for part in parts)
