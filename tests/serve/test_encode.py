"""Encoding a batch: a job is complete once, however many of its parts are in it."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from tercet.serve.encode import encode
from tercet.serve.jobs import EncodingJob, EncodingRequest, JobPart
from tercet.specs import Floats
from tercet.text.tokens import Pieces


class Engine:
    """The vector of a text is its number of pieces."""

    def vectors(self, pieces: Pieces, rows: Any, *, side: str | None) -> Floats:
        return pieces.lengths[rows][:, None].astype(np.float32)


class Windows:
    """All rows are windows of one text."""

    def average(self, values: Floats) -> Floats:
        assert len(values) == 2
        return values.mean(axis=0, keepdims=True)


def test_a_job_with_two_parts_in_a_batch_is_averaged_once() -> None:
    engine: Any = Engine()
    windows: Any = Windows()
    lengths = np.array([3, 5])
    pieces = Pieces.of_ids([[1, 2, 3], [4, 5, 6, 7, 8]], limit=10)
    request = EncodingRequest(engine, [pieces], lengths, inputs=1, windows=windows)
    job = EncodingJob.of(request, asyncio.Future(loop=asyncio.new_event_loop()), budget=100)
    done = encode([JobPart(job, np.array([0]), 3), JobPart(job, np.array([1]), 5)])
    assert done == [job]
    assert job.result is not None
    assert job.result.tolist() == [[4.0]]
