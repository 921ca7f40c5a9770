"""Embedding a file on this machine: streamed in parts, resumed after an interruption."""

from __future__ import annotations

from contextlib import suppress

from tercet.data.stream import TextFile
from tercet.embed.output import check_output, write_vectors
from tercet.embed.schema import Identity, vectors_schema
from tercet.embed.staged import remove_work, stage, writing_alone
from tercet.model import Model
from tercet.progress import Progress, silent


def embed_file(
    source: str,
    out: str,
    *,
    model: Model,
    column: str | None = None,
    width: int | None = None,
    progress: Progress = silent,
) -> int:
    """Embed every row of a file into a Parquet or npy file, in the file's order.

    Parts that an interrupted call finished are not embedded again. Returns the number of rows.

    width: one of the model's widths; default: the full one
    """
    check_output(out)
    file = TextFile.open(source, column)
    identity = Identity.of(model, width=width)
    schema = vectors_schema(file.columns, identity)
    with writing_alone(out) as work:
        staged = stage(file, model, identity, work / "embed", skip_empty=False, progress=progress)
        write_vectors(staged.batches(), schema, rows=file.rows, out=out)
        remove_work(work / "embed")
        with suppress(OSError):  # it holds files of the user
            work.rmdir()
    return file.rows
