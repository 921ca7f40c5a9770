"""The batcher: all requests wait in one queue, and lanes, threads with cores of their own, encode.

No batch waits to fill: a lane takes what is queued, and what arrives meanwhile is the next batch.
Lanes do not wait for each other either: those that share a batch do, and the event loop, which
needs a core now and then, delays them all. Clients take turns, and so do their requests, so that a
short one does not wait for all of a long one; how long a request waits is judged by its own turns,
not by all that is queued.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from tercet.cores import give_way, share_here
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
LEAST_TOKENS = 128
"""Tokens that a lane takes before it leaves some to idle ones; fewer leave a core's units idle."""
LINGER_SECONDS = 0.002
"""Seconds that a lane waits for LEAST_TOKENS after a first request, if others encode meanwhile."""
LONGEST_RETRY = 60


@dataclass(frozen=True, slots=True)
class Batch:
    """What a lane encodes at once.

    sharers: lanes that share the cores meanwhile, this one included
    """

    parts: list[JobPart]
    sharers: int

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


class Batcher:
    """The queue of the encoder. All methods except those of the lanes run in the event loop."""

    def __init__(self, encode: Encode, limits: Limits, metrics: Metrics, *, lanes: int = 1) -> None:
        """lanes: threads that encode, each a batch of its own"""
        self._encode = encode
        self.limits = limits
        self.metrics = metrics
        self._loop: asyncio.AbstractEventLoop
        self._arrivals: SimpleQueue[EncodingJob | None] = SimpleQueue()
        self._turns = Turns()
        self._filling = threading.Lock()
        """Held by the lane that takes the next batch, or waits for it."""
        self._pending: dict[str, set[EncodingJob]] = {}
        self._inputs = self._tokens = 0
        self._rate: float | None = None
        self._measured = 0.0
        self._batches_began: list[float | None] = [None] * lanes
        self._lanes = [
            threading.Thread(target=self._work, args=[lane], name=f"encoder-{lane}", daemon=True)
            for lane in range(lanes)
        ]
        self.dead = False
        """Whether a lane has crashed; no request is answered then."""

    @property
    def stuck(self) -> bool:
        """Whether the encoder makes no progress: its batch takes longer than any request may."""
        earliest = time.monotonic() - self.limits.timeout
        began = self._batches_began
        return self.dead or any(each is not None and each < earliest for each in began)

    def start(self) -> None:
        """Start the lanes; results go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        for lane in self._lanes:
            lane.start()

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
        """End the lanes once the queue is empty."""
        self._arrivals.put(None)
        end = time.monotonic() + self.limits.timeout
        for lane in self._lanes:
            lane.join(max(end - time.monotonic(), 0.0))

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

    def _work(self, lane: int) -> None:
        """The thread of a lane."""
        # Under load it is always busy; the event loop needs little, but clients wait for it.
        give_way()
        try:
            while (batch := self._next_batch(lane)) is not None:
                if batch.parts:
                    share_here(batch.sharers)
                    self._encode_batch(lane, batch)
        except BaseException as error:  # noqa: BLE001 (no request may wait for a dead thread)
            log_failure("encoder-died", error)
            self._loop.call_soon_threadsafe(self._die)

    def _next_batch(self, lane: int) -> Batch | None:
        """Parts of queued requests, in turns, up to the token budget; None at the end."""
        with self._filling:
            ended = self._collect()
            idle = self._batches_began.count(None)
            share = max(math.ceil(self._turns.tokens / idle), LEAST_TOKENS)
            parts = self._turns.fill(min(self._budget(), share))
            # A lane that has everything uses the cores of the others too.
            alone = idle == len(self._lanes) and not self._turns
            if parts:
                self._batches_began[lane] = time.monotonic()
        return None if ended and not parts else Batch(parts, 1 if alone else len(self._lanes))

    def _collect(self) -> bool:
        """Take what has arrived, after waiting for it if nothing is queued; whether it ends."""
        if self._turns:
            ended = self._take_arrivals(0.0)
        else:
            ended = self._take_arrivals(None)
            end = time.monotonic() + LINGER_SECONDS if self._is_any_busy() else 0.0
            # What other lanes have just answered is likely to be followed by more.
            while not ended and self._turns.tokens < LEAST_TOKENS:
                if (left := end - time.monotonic()) <= 0.0:
                    break
                ended = self._take_arrivals(left)
        if ended:
            self._arrivals.put(None)  # for the next call, and the other lanes
        return ended

    def _is_any_busy(self) -> bool:
        return any(began is not None for began in self._batches_began)

    def _take_arrivals(self, seconds: float | None) -> bool:
        """Take all that has arrived, waiting so long for the first; None: for ever. Returns whether
        it ends."""
        ended = False
        with suppress(Empty):
            job = (
                self._arrivals.get(timeout=seconds)
                if seconds != 0.0
                else self._arrivals.get_nowait()
            )
            while True:
                if job is None:
                    ended = True
                else:
                    self._turns.add(job)
                job = self._arrivals.get_nowait()
        return ended

    def _budget(self) -> int:
        """The tokens of a batch."""
        most, rate = self.limits.batch_tokens, self._rate
        if rate is None:
            return most
        return min(most, max(int(rate / len(self._lanes) * BATCH_SECONDS), FEWEST_TOKENS))

    def _encode_batch(self, lane: int, batch: Batch) -> None:
        began = time.monotonic()
        try:
            done = self._encode(batch.parts)
        except Exception as error:  # noqa: BLE001 (a bad batch must not end the thread)
            log_failure("batch-failed", error, inputs=len(batch.parts))
            jobs = {part.job for part in batch.parts}
            self._loop.call_soon_threadsafe(self._fail, jobs)
            with self._filling:
                self._turns.remove(jobs)
            return
        finally:
            self._batches_began[lane] = None
        seconds = time.monotonic() - began
        self._loop.call_soon_threadsafe(self._answer, batch, done, seconds)

    def _answer(self, batch: Batch, done: Sequence[EncodingJob], seconds: float) -> None:
        now, tokens = time.monotonic(), batch.tokens
        # A small batch takes nearly as long as a large one and would make the encoder seem slow.
        if 2 * tokens >= self._budget():
            rate = batch.sharers * tokens / max(seconds, 1e-6)
            before = rate if self._rate is None else self._rate
            self._rate, self._measured = before + SMOOTHING * (rate - before), now
            self._give_up(now)
        for job in done:
            if not job.future.done() and job.result is not None:
                job.future.set_result(job.result)
            self.metrics.queue_seconds.observe(now - job.since)
        self.metrics.inputs.inc(sum(len(part.rows) for part in batch.parts))
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
