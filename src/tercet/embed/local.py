"""Embedding a file on this machine: streamed in parts, resumed where it was interrupted."""

from __future__ import annotations

import shutil

from tercet.data.stream import TextFile
from tercet.embed.identity import Identity
from tercet.embed.output import check_output, write_vectors
from tercet.embed.schema import vectors_schema
from tercet.embed.staged import stage, work_folder
from tercet.infer.engine import Progress
from tercet.model import Model


def embed_file(
    source: str,
    out: str,
    *,
    model: Model,
    identity: Identity,
    column: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Embed every row of a file into a Parquet or npy file, in the file's order; how many rows.

    Parts that an interrupted call finished are not embedded again.
    """
    check_output(out)
    file = TextFile.open(source, column)
    schema = vectors_schema(file.columns, identity)
    work = work_folder(out)
    staged = stage(file, model, identity, work / "embed", skip_empty=False, progress=progress)
    write_vectors(staged.batches(), schema, rows=file.rows, out=out)
    shutil.rmtree(work)
    return file.rows
