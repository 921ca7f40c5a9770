"""Encoding a batch: parts of many jobs together, then predictions by their heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from tercet.infer.base import BaseEngine
from tercet.infer.batches import Rows
from tercet.serve.jobs import EncodingJob, EncodingRequest, HeadRef, JobPart
from tercet.specs import Floats
from tercet.text.tokens import Pieces


@dataclass(frozen=True, slots=True)
class Pass:
    """What rows must have in common to be encoded together.

    engine: the id of the engine, since engines have no hash
    joint: whether rows are pairs, encoded jointly
    side: the task whose side weights are used, if any
    head: a head that needs the tokens
    """

    engine: int
    joint: bool
    side: str | None
    head: HeadRef | None

    @classmethod
    def of(cls, request: EncodingRequest) -> Pass:
        head = request.head
        side = head.side if head is not None else None
        needing = head if head is not None and head.needs_tokens else None
        return cls(id(request.engine), request.joint, side, needing)


def encode(parts: Sequence[JobPart]) -> list[EncodingJob]:
    """Encode the parts. Returns the jobs that are complete, with their results."""
    passes: dict[Pass, list[JobPart]] = {}
    for part in parts:
        passes.setdefault(Pass.of(part.job.request), []).append(part)
    done = []
    for shared, members in passes.items():
        values = _encode_pass(members[0].job.request.engine, members, shared)
        start = 0
        for part in members:
            # A job may have several parts in a batch, and is complete only once.
            if part.job.store(part.rows, values[start : start + len(part.rows)]):
                done.append(part.job)
            start += len(part.rows)
    _predict(done)
    return done


def _encode_pass(engine: BaseEngine, parts: Sequence[JobPart], shared: Pass) -> Floats:
    """Vectors [rows, width] as pooled, or outputs [rows, outputs] of a head that needs tokens."""
    columns = [_gather(parts, place) for place in range(2 if shared.joint else 1)]
    if shared.head is not None:
        return engine.outputs(shared.head.task, shared.head.mode, columns)
    if shared.joint:
        return engine.joint_vectors(*columns, side=shared.side)
    # A text that occurs in several requests is encoded once.
    rows, places = columns[0].distinct()
    vectors: Floats = engine.vectors(columns[0], rows, side=shared.side)[places]
    return vectors


def _gather(parts: Sequence[JobPart], side: int) -> Pieces:
    """The word pieces of all rows of all parts."""
    columns = [(part.job.request.columns[side], part.rows) for part in parts]
    return Pieces.concat([c if _is_all(rows, c) else c.take(rows) for c, rows in columns])


def _is_all(rows: Rows, column: Pieces) -> bool:
    """Whether the rows are all of a column, in their order."""
    return len(rows) == len(column) and bool((rows[1:] > rows[:-1]).all())


def _predict(jobs: Sequence[EncodingJob]) -> None:
    """Apply each head to the vectors of all jobs that need it together."""
    by_head: dict[tuple[int, HeadRef], list[EncodingJob]] = {}
    for job in jobs:
        request = job.request
        if request.head is None or request.head.mode == "bi":
            job.result = request.average(cast(Floats, job.result))
        if request.head is not None:
            by_head.setdefault((id(request.engine), request.head), []).append(job)
    for (_, head), members in by_head.items():
        engine = members[0].request.engine
        outputs = np.concatenate([cast(Floats, job.result) for job in members])
        if not head.needs_tokens:
            columns = _columns(members, pairs=head.mode == "bi")
            outputs = engine.apply_head(head.task, head.mode, outputs, columns)
        if head.mode != "bi":
            outputs = _averages(members, outputs)
        predicted = engine.predict(head.task, head.mode, outputs)
        start = 0
        for job in members:
            inputs = job.request.inputs
            job.result = predicted[start : start + inputs]
            start += inputs


def _averages(jobs: Sequence[EncodingJob], outputs: Floats) -> Floats:
    """A head's outputs for all rows of the jobs -> for their inputs."""
    if all(job.request.windows is None for job in jobs):
        return outputs
    ends = np.cumsum([job.request.rows for job in jobs])
    parts = zip(jobs, np.split(outputs, ends[:-1]), strict=True)
    return np.concatenate([job.request.average(part) for job, part in parts])


def _columns(jobs: Sequence[EncodingJob], *, pairs: bool) -> list[Rows]:
    """The rows of the jobs' inputs among all their vectors."""
    starts = np.cumsum([0, *(len(cast(Floats, job.result)) for job in jobs)])
    if not pairs:
        return [np.arange(starts[-1])]
    first = [
        start + np.arange(job.request.inputs) for start, job in zip(starts, jobs, strict=False)
    ]
    second = [rows + len(rows) for rows in first]
    return [np.concatenate(first), np.concatenate(second)]
