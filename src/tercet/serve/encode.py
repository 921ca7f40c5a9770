"""Encoding a batch: parts of many jobs together, then predictions by their heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from tercet.infer.base import BaseEngine
from tercet.infer.batches import Rows
from tercet.serve.jobs import EncodingJob, HeadRef, JobPart
from tercet.specs import Floats
from tercet.text.tokens import Pieces


def encode(engine: BaseEngine, parts: Sequence[JobPart]) -> list[EncodingJob]:
    """Encode the parts. Returns the jobs that are complete, with their results."""
    passes: dict[tuple[bool, HeadRef | None], list[JobPart]] = {}
    for part in parts:
        request = part.job.request
        head = request.head if request.head is not None and request.head.needs_tokens else None
        passes.setdefault((request.joint, head), []).append(part)
    for (joint, head), members in passes.items():
        values = _encode_pass(engine, members, sides=2 if joint else 1, head=head)
        start = 0
        for part in members:
            part.job.store(part.rows, values[start : start + len(part.rows)])
            start += len(part.rows)
    done = [part.job for part in parts if part.job.left == 0]
    _predict(engine, done)
    return done


def _encode_pass(
    engine: BaseEngine, parts: Sequence[JobPart], *, sides: int, head: HeadRef | None
) -> Floats:
    """Vectors [rows, width] as pooled, or outputs [rows, outputs] of a head that needs tokens."""
    columns = [_gather(parts, side) for side in range(sides)]
    if head is not None:
        return engine.outputs(head.task, head.mode, columns)
    if sides == 2:
        return engine.joint_vectors(*columns)
    # A text that occurs in several requests is encoded once.
    rows, places = columns[0].distinct()
    vectors: Floats = engine.vectors(columns[0], rows)[places]
    return vectors


def _gather(parts: Sequence[JobPart], side: int) -> Pieces:
    """The word pieces of all rows of all parts."""
    columns = [(part.job.request.columns[side], part.rows) for part in parts]
    # The rows of a job of one part are in their order.
    return Pieces.concat([c if len(rows) == len(c) else c.take(rows) for c, rows in columns])


def _predict(engine: BaseEngine, jobs: Sequence[EncodingJob]) -> None:
    """Apply each head to the vectors of all jobs that need it together."""
    by_head: dict[HeadRef, list[EncodingJob]] = {}
    for job in jobs:
        if job.request.head is not None:
            by_head.setdefault(job.request.head, []).append(job)
    for head, members in by_head.items():
        outputs = np.concatenate([cast(Floats, job.result) for job in members])
        if not head.needs_tokens:
            columns = _columns(members, pairs=head.mode == "bi")
            outputs = engine.apply_head(head.task, head.mode, outputs, columns)
        predicted = engine.predict(head.task, head.mode, outputs)
        start = 0
        for job in members:
            inputs = job.request.inputs
            job.result = predicted[start : start + inputs]
            start += inputs


def _columns(jobs: Sequence[EncodingJob], *, pairs: bool) -> list[Rows]:
    """The rows of the jobs' inputs among all their vectors."""
    requests = [job.request for job in jobs]
    starts = np.cumsum([0, *(request.rows for request in requests)])
    if not pairs:
        return [np.arange(starts[-1])]
    first = [
        start + np.arange(request.inputs) for start, request in zip(starts, requests, strict=False)
    ]
    second = [rows + len(rows) for rows in first]
    return [np.concatenate(first), np.concatenate(second)]
