"""The batcher: all requests wait in one queue, and one thread encodes them.

No batch waits to fill: the encoder takes what is queued, and what arrives meanwhile is the next
batch. Requests take turns, so that a short one does not wait for all of a long one.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from tercet.serve.jobs import EncodingJob, EncodingRequest, JobPart
from tercet.serve.logs import log_failure
from tercet.serve.metrics import Metrics
from tercet.serve.refusal import RefusalError
from tercet.serve.settings import Limits
from tercet.specs import Floats

Encode = Callable[[Sequence[JobPart]], list[EncodingJob]]

SMOOTHING = 0.2
"""Weight of the newest large batch in the rate by which waiting times are estimated."""
LONGEST_RETRY = 60
NICENESS = 5


class Batcher:
    """The queue of the encoder. All methods except the thread's own run in the event loop."""

    def __init__(self, encode: Encode, limits: Limits, metrics: Metrics) -> None:
        self._encode = encode
        self.limits = limits
        self.metrics = metrics
        self._loop: asyncio.AbstractEventLoop
        self._arrivals: SimpleQueue[EncodingJob | None] = SimpleQueue()
        self._waiting: deque[EncodingJob] = deque()
        self._pending: set[EncodingJob] = set()
        self._inputs = self._tokens = 0
        self._rate: float | None = None
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self.dead = False
        """Whether the encoder's thread has crashed; no request is answered then."""

    def start(self) -> None:
        """Start the encoder's thread; results go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def submit(self, request: EncodingRequest) -> Floats:
        """The result: vectors [rows, width] as pooled, or predictions [inputs, ...]."""
        if self.dead:
            raise RefusalError(503, "The encoder has failed and the server is shutting down.")
        job = EncodingJob.of(request, self._loop.create_future(), budget=self.limits.batch_tokens)
        self._admit(request, job.tokens)
        self._count(request.inputs, job.tokens)
        self._pending.add(job)
        self._arrivals.put(job)
        try:
            return await job.future
        finally:
            self._pending.discard(job)
            self._count(-request.inputs, -job.tokens)

    def stop(self) -> None:
        """End the thread once the queue is empty."""
        self._arrivals.put(None)
        self._thread.join(self.limits.timeout)

    def _admit(self, request: EncodingRequest, tokens: int) -> None:
        limits = self.limits
        if tokens > limits.queue_tokens:
            raise RefusalError(
                413,
                f"The request has {tokens} tokens; the queue holds {limits.queue_tokens}: send "
                "fewer inputs per request.",
            )
        full = (
            self._inputs + request.inputs > limits.queue_inputs
            or self._tokens + tokens > limits.queue_tokens
        )
        # With an empty queue even a long request starts immediately.
        if full or (self._tokens and self._seconds(self._tokens) > limits.wait):
            retry = min(max(1, math.ceil(self._seconds(self._tokens))), LONGEST_RETRY)
            raise RefusalError(
                429,
                f"The server is busy: {self._inputs} inputs are queued; try again in {retry} s.",
                retry_after=retry,
            )

    def _seconds(self, tokens: int) -> float:
        """The time that the encoder probably takes."""
        return tokens / self._rate if self._rate else 0.0

    def _count(self, inputs: int, tokens: int) -> None:
        self._inputs += inputs
        self._tokens += tokens
        self.metrics.queue_inputs.set(self._inputs)
        self.metrics.queue_tokens.set(self._tokens)

    def _work(self) -> None:
        """The encoder's thread."""
        if sys.platform == "linux":
            # Under load it is always busy; the event loop needs little, but clients wait for it.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            while (parts := self._next_batch()) is not None:
                self._encode_batch(parts)
        except BaseException as error:  # noqa: BLE001 (no request may wait for a dead thread)
            log_failure("encoder-died", error)
            self._loop.call_soon_threadsafe(self._die)

    def _next_batch(self) -> list[JobPart] | None:
        """Parts of all queued requests, in turns, up to the token budget; None at the end."""
        ended = False
        while True:
            try:
                job = self._arrivals.get(block=not self._waiting and not ended)
            except Empty:
                break
            if job is None:
                ended = True
            else:
                self._waiting.append(job)
        if ended:
            self._arrivals.put(None)  # for the next call, when the queue is empty
        return self._fill() or (None if ended else [])

    def _fill(self) -> list[JobPart]:
        parts: list[JobPart] = []
        budget = self.limits.batch_tokens
        while self._waiting:
            job = self._waiting.popleft()
            if job.future.done():  # its client has left, or it has timed out
                continue
            tokens = int(job.request.lengths[job.parts[0]].sum())
            if parts and tokens > budget:
                self._waiting.appendleft(job)
                break
            parts.append(JobPart(job, job.parts.popleft(), tokens))
            budget -= tokens
            if job.parts:
                self._waiting.append(job)
        return parts

    def _encode_batch(self, parts: list[JobPart]) -> None:
        if not parts:
            return
        began = time.monotonic()
        try:
            done = self._encode(parts)
        except Exception as error:  # noqa: BLE001 (a bad batch must not end the thread)
            log_failure("batch-failed", error, inputs=len(parts))
            jobs = {part.job for part in parts}
            for job in jobs:
                job.parts.clear()
            self._waiting = deque(job for job in self._waiting if job not in jobs)
            self._loop.call_soon_threadsafe(self._fail, jobs)
            return
        seconds = time.monotonic() - began
        tokens = sum(part.tokens for part in parts)
        self._loop.call_soon_threadsafe(self._answer, parts, done, tokens, seconds)

    def _answer(
        self, parts: Sequence[JobPart], done: Sequence[EncodingJob], tokens: int, seconds: float
    ) -> None:
        now = time.monotonic()
        # A small batch takes nearly as long as a large one and would make the encoder seem slow.
        if 2 * tokens >= self.limits.batch_tokens:
            rate = tokens / max(seconds, 1e-6)
            before = rate if self._rate is None else self._rate
            self._rate = before + SMOOTHING * (rate - before)
        for job in done:
            if not job.future.done() and job.result is not None:
                job.future.set_result(job.result)
            self.metrics.queue_seconds.observe(now - job.since)
        self.metrics.inputs.inc(sum(len(part.rows) for part in parts))
        self.metrics.tokens.inc(tokens)
        self.metrics.fill.observe(tokens / self.limits.batch_tokens)
        self.metrics.batch_seconds.observe(seconds)

    def _fail(self, jobs: set[EncodingJob]) -> None:
        self.metrics.failures.inc()
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(RefusalError(500, "The encoder failed on this batch."))

    def _die(self) -> None:
        self.dead = True
        self._fail(set(self._pending))
