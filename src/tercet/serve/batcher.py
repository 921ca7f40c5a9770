"""The batcher: all requests wait in one queue, and one thread encodes them.

No batch waits to fill: the encoder takes what is queued, and what arrives meanwhile is the next
batch. Clients take turns, and so do their requests, so that a short one does not wait for all of a
long one; how long a request waits is judged by its own turns, not by all that is queued.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from tercet.cores import give_way
from tercet.serve.jobs import EncodingJob, EncodingRequest, JobPart
from tercet.serve.logs import log_failure
from tercet.serve.metrics import Metrics
from tercet.serve.refusal import RefusalError
from tercet.serve.settings import Limits
from tercet.serve.turns import Turns, turn_tokens
from tercet.specs import Floats

Encode = Callable[[Sequence[JobPart]], list[EncodingJob]]

SMOOTHING = 0.2
"""Weight of the newest large batch in the rate by which waiting times are estimated."""
RATE_SECONDS = 60.0
"""Seconds after which a measured rate refuses no request any more: a slow moment must not last."""
BATCH_SECONDS = 0.25
"""Seconds that a batch should take, since a new request waits for the one that is encoded."""
FEWEST_TOKENS = 512
"""Tokens of a batch that an encoder takes however slow it is; smaller ones lose throughput."""
LONGEST_RETRY = 60


class Batcher:
    """The queue of the encoder. All methods except the thread's own run in the event loop."""

    def __init__(self, encode: Encode, limits: Limits, metrics: Metrics) -> None:
        self._encode = encode
        self.limits = limits
        self.metrics = metrics
        self._loop: asyncio.AbstractEventLoop
        self._arrivals: SimpleQueue[EncodingJob | None] = SimpleQueue()
        self._turns = Turns()
        self._pending: dict[str, set[EncodingJob]] = {}
        self._inputs = self._tokens = 0
        self._rate: float | None = None
        self._measured = 0.0
        self._batch_began: float | None = None
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self.dead = False
        """Whether the encoder's thread has crashed; no request is answered then."""

    @property
    def stuck(self) -> bool:
        """Whether the encoder makes no progress: its batch takes longer than any request may."""
        began = self._batch_began
        return self.dead or (began is not None and time.monotonic() - began > self.limits.timeout)

    def start(self) -> None:
        """Start the encoder's thread; results go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def submit(self, request: EncodingRequest) -> Floats:
        """The result: vectors [rows, width] as pooled, or predictions [inputs, ...]."""
        if self.dead:
            raise RefusalError(503, "The encoder has failed and the server is shutting down.")
        job = EncodingJob.of(request, self._loop.create_future(), budget=self.limits.batch_tokens)
        self._admit(job)
        self._count(request.inputs, job.tokens)
        self._pending.setdefault(request.client, set()).add(job)
        self._arrivals.put(job)
        try:
            return await job.future
        finally:
            self._count(-request.inputs, -job.tokens)
            jobs = self._pending[request.client]
            jobs.discard(job)
            if not jobs:
                del self._pending[request.client]

    def stop(self) -> None:
        """End the thread once the queue is empty."""
        self._arrivals.put(None)
        self._thread.join(self.limits.timeout)

    def _admit(self, job: EncodingJob) -> None:
        limits = self.limits
        if job.tokens > limits.queue_tokens:
            raise RefusalError(
                413,
                f"The request has {job.tokens} tokens; the queue holds {limits.queue_tokens}: send "
                "fewer inputs per request.",
            )
        if self._seconds(job.tokens) > limits.timeout:
            raise self._too_slow(job)
        before = self._work_before(job) if self._tokens else 0
        seconds = self._seconds(before)
        late = seconds > limits.wait or seconds + self._seconds(job.tokens) > limits.timeout
        # With an empty queue even a long request starts immediately.
        if before and (late or not self._has_room(job)):
            retry = min(max(1, math.ceil(seconds)), LONGEST_RETRY)
            raise RefusalError(
                429,
                f"The server is busy: {self._inputs} inputs are queued; try again in {retry} s.",
                retry_after=retry,
            )

    def _too_slow(self, job: EncodingJob) -> RefusalError:
        return RefusalError(
            413,
            f"The request has {job.tokens} tokens, more than the server encodes in "
            f"{self.limits.timeout:g} s: send fewer inputs per request.",
        )

    def _has_room(self, job: EncodingJob) -> bool:
        """Whether the queue has room, or else the job is within its client's even share of it."""
        limits, inputs, client = self.limits, job.request.inputs, job.request.client
        if (
            self._inputs + inputs <= limits.queue_inputs
            and self._tokens + job.tokens <= limits.queue_tokens
        ):
            return True
        jobs = len(self._pending.get(client, ())) + 1
        shares = len(self._pending.keys() | {client}) * jobs
        return shares * inputs <= limits.queue_inputs and shares * job.tokens <= limits.queue_tokens

    def _work_before(self, job: EncodingJob) -> int:
        """The tokens of others that are encoded before the job ends, as clients take turns."""
        least = turn_tokens(self.limits.batch_tokens)
        reach = max(job.tokens, least)
        same = self._pending.get(job.request.client, set())
        own = sum(min(other.tokens - other.encoded, reach) for other in same)
        reach = max(job.tokens + own, least)
        others = (
            min(sum(other.tokens - other.encoded for other in jobs), reach)
            for client, jobs in self._pending.items()
            if client != job.request.client
        )
        return own + sum(others)

    def _seconds(self, tokens: int) -> float:
        """The time that the encoder probably takes; 0 while its speed is not known."""
        if self._rate is None or time.monotonic() - self._measured > RATE_SECONDS:
            return 0.0
        return tokens / self._rate

    def _count(self, inputs: int, tokens: int) -> None:
        self._inputs += inputs
        self._tokens += tokens
        self.metrics.queue_inputs.set(self._inputs)
        self.metrics.queue_tokens.set(self._tokens)

    def _work(self) -> None:
        """The encoder's thread."""
        # Under load it is always busy; the event loop needs little, but clients wait for it.
        give_way()
        try:
            while (parts := self._next_batch()) is not None:
                self._encode_batch(parts)
        except BaseException as error:  # noqa: BLE001 (no request may wait for a dead thread)
            log_failure("encoder-died", error)
            self._loop.call_soon_threadsafe(self._die)

    def _next_batch(self) -> list[JobPart] | None:
        """Parts of queued requests, in turns, up to the token budget; None at the end."""
        ended = False
        while True:
            try:
                job = self._arrivals.get(block=not self._turns and not ended)
            except Empty:
                break
            if job is None:
                ended = True
            else:
                self._turns.add(job)
        if ended:
            self._arrivals.put(None)  # for the next call, when the queue is empty
        return self._turns.fill(self._budget()) or (None if ended else [])

    def _budget(self) -> int:
        """The tokens of a batch."""
        most, rate = self.limits.batch_tokens, self._rate
        if rate is None:
            return most
        return min(most, max(int(rate * BATCH_SECONDS), FEWEST_TOKENS))

    def _encode_batch(self, parts: list[JobPart]) -> None:
        if not parts:
            return
        self._batch_began = began = time.monotonic()
        try:
            done = self._encode(parts)
        except Exception as error:  # noqa: BLE001 (a bad batch must not end the thread)
            log_failure("batch-failed", error, inputs=len(parts))
            jobs = {part.job for part in parts}
            self._turns.remove(jobs)
            self._loop.call_soon_threadsafe(self._fail, jobs)
            return
        finally:
            self._batch_began = None
        seconds = time.monotonic() - began
        tokens = sum(part.tokens for part in parts)
        self._loop.call_soon_threadsafe(self._answer, parts, done, tokens, seconds)

    def _answer(
        self, parts: Sequence[JobPart], done: Sequence[EncodingJob], tokens: int, seconds: float
    ) -> None:
        now = time.monotonic()
        # A small batch takes nearly as long as a large one and would make the encoder seem slow.
        if 2 * tokens >= self._budget():
            rate = tokens / max(seconds, 1e-6)
            before = rate if self._rate is None else self._rate
            self._rate, self._measured = before + SMOOTHING * (rate - before), now
            self._give_up(now)
        for job in done:
            if not job.future.done() and job.result is not None:
                job.future.set_result(job.result)
            self.metrics.queue_seconds.observe(now - job.since)
        self.metrics.inputs.inc(sum(len(part.rows) for part in parts))
        self.metrics.tokens.inc(tokens)
        self.metrics.fill.observe(tokens / self.limits.batch_tokens)
        self.metrics.batch_seconds.observe(seconds)

    def _give_up(self, now: float) -> None:
        """Refuse what would be late even at twice the speed, so that it delays nobody else."""
        for job in set().union(*self._pending.values()):
            end = now + self._seconds(job.tokens - job.encoded) / 2
            if not job.future.done() and end > job.since + self.limits.timeout:
                job.future.set_exception(self._too_slow(job))

    def _fail(self, jobs: set[EncodingJob]) -> None:
        self.metrics.failures.inc()
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(RefusalError(500, "The encoder failed on this batch."))

    def _die(self) -> None:
        self.dead = True
        self._fail(set().union(*self._pending.values()))
