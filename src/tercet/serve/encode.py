"""A batch through the model: parts of many jobs encoded together, then read by their heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from tercet.infer.base import BaseEngine
from tercet.infer.batches import Rows
from tercet.serve.work import Floats, Job, Part, Reader
from tercet.text.tokens import Pieces


def encode(engine: BaseEngine, parts: Sequence[Part]) -> list[Job]:
    """Encode the parts; the jobs that are complete come back with what they wanted in `found`."""
    passes: dict[tuple[bool, Reader | None], list[Part]] = {}
    for part in parts:
        work = part.job.work
        whole = work.reader if work.reader is not None and work.reader.whole else None
        passes.setdefault((work.joint, whole), []).append(part)
    for (joint, whole), members in passes.items():
        found = _encode_pass(engine, members, sides=2 if joint else 1, reader=whole)
        start = 0
        for part in members:
            part.job.keep(part.rows, found[start : start + len(part.rows)])
            start += len(part.rows)
    done = [part.job for part in parts if part.job.left == 0]
    _predict(engine, done)
    return done


def _encode_pass(
    engine: BaseEngine, parts: Sequence[Part], *, sides: int, reader: Reader | None
) -> Floats:
    """Vectors [rows, width] as pooled, or outputs [rows, outputs] of a head that needs tokens."""
    columns = [_gather(parts, side) for side in range(sides)]
    if reader is not None:
        return engine.outputs(reader.task, reader.mode, columns)
    if sides == 2:
        return engine.joint_vectors(*columns)
    # A text that several requests ask about is encoded once.
    kept, places = columns[0].distinct()
    vectors: Floats = engine.vectors(columns[0], kept)[places]
    return vectors


def _gather(parts: Sequence[Part], side: int) -> Pieces:
    """The word pieces of all rows of all parts."""
    return Pieces.concat([_take(part.job.work.columns[side], part.rows) for part in parts])


def _take(pieces: Pieces, rows: Rows) -> Pieces:
    # The rows of a job of one part are in their order.
    return pieces if len(rows) == len(pieces) else pieces.take(rows)


def _predict(engine: BaseEngine, jobs: Sequence[Job]) -> None:
    """Let each head read the vectors of all jobs that want it, at once."""
    wanted: dict[Reader, list[Job]] = {}
    for job in jobs:
        if job.work.reader is not None:
            wanted.setdefault(job.work.reader, []).append(job)
    for reader, members in wanted.items():
        outputs = np.concatenate([cast(Floats, job.found) for job in members])
        if not reader.whole:
            columns = _columns(members, pairs=reader.mode == "bi")
            outputs = engine.apply_head(reader.task, reader.mode, outputs, columns)
        predicted = engine.predict(reader.task, reader.mode, outputs)
        start = 0
        for job in members:
            job.found = predicted[start : start + job.work.inputs]
            start += job.work.inputs


def _columns(jobs: Sequence[Job], *, pairs: bool) -> list[Rows]:
    """Where the jobs' inputs stand among their vectors laid end to end."""
    if not pairs:
        return [np.arange(sum(job.work.rows for job in jobs))]
    starts = np.cumsum([0, *(job.work.rows for job in jobs)])
    first = [start + np.arange(job.work.inputs) for start, job in zip(starts, jobs, strict=False)]
    second = [rows + len(rows) for rows in first]
    return [np.concatenate(first), np.concatenate(second)]
