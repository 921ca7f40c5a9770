"""The batcher before an encoder of the tests, which tells what it got and waits to be let on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.serve import batcher as batcher_module
from tercet.serve.batcher import Batcher
from tercet.serve.jobs import EncodingJob, EncodingRequest, JobPart
from tercet.serve.metrics import Metrics
from tercet.serve.refusal import RefusalError
from tercet.serve.settings import Limits
from tercet.text.tokens import Pieces

LIMITS = Limits(
    inputs=100,
    tokens=10,
    body=1000,
    long_inputs="truncate",
    queue_inputs=100,
    queue_tokens=200,
    batch_tokens=20,
    wait=1000.0,
    timeout=2000.0,
)


def work_of(*lengths: int, client: str = "ada") -> EncodingRequest:
    """Texts of so many tokens each; every token of text i is the number i."""
    counts = np.array(lengths, np.int64)
    pieces = Pieces(
        ids=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        lengths=counts,
    )
    engine: Any = None  # the encoder of these tests needs none
    return EncodingRequest(
        engine, columns=[pieces], lengths=counts, inputs=len(counts), client=client
    )


class Encoder:
    """Gives each row its number and its length, and waits for the test where it should."""

    def __init__(self) -> None:
        self.batches: list[list[tuple[int, int]]] = []
        self.go = threading.Event()
        self.go.set()
        self.began = threading.Event()
        self.error: BaseException | None = None
        self.seconds = 0.0

    def __call__(self, parts: Sequence[JobPart]) -> list[EncodingJob]:
        self.batches.append([(len(part.rows), part.tokens) for part in parts])
        self.began.set()
        self.go.wait(60)
        time.sleep(self.seconds)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        for part in parts:
            lengths = part.job.request.lengths[part.rows]
            part.job.store(part.rows, np.stack([part.rows, lengths], axis=1).astype(np.float32))
        return [part.job for part in parts if part.job.left == 0]

    async def hold(self, batcher: Batcher) -> asyncio.Task[Any]:
        """Let it begin with one token, and stay with it until `go` is set."""
        self.go.clear()
        self.began.clear()
        task = asyncio.create_task(batcher.submit(work_of(1)))
        await asyncio.to_thread(self.began.wait, 60)
        return task


def run(
    test: Callable[[Batcher, Encoder], Awaitable[None]], **limits: Any
) -> tuple[Batcher, Encoder]:
    encoder = Encoder()
    batcher = Batcher(encoder, replace(LIMITS, **limits), Metrics())

    async def main() -> None:
        batcher.start()
        try:
            await asyncio.wait_for(test(batcher, encoder), 60)
        finally:
            encoder.go.set()
            await asyncio.to_thread(batcher.stop)

    asyncio.run(main())
    return batcher, encoder


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(1, 10), min_size=1, max_size=9), min_size=1, max_size=6))
def test_every_request_gets_its_own_rows_in_its_own_order(requests: list[list[int]]) -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        found = await asyncio.gather(*(batcher.submit(work_of(*lengths)) for lengths in requests))
        for lengths, rows in zip(requests, found, strict=True):
            assert rows.tolist() == [[row, length] for row, length in enumerate(lengths)]

    _, encoder = run(test, queue_inputs=1000, queue_tokens=1000)
    for batch in encoder.batches:
        assert sum(tokens for _, tokens in batch) <= LIMITS.batch_tokens


def test_what_waits_together_is_encoded_together() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        held = await encoder.hold(batcher)
        others = [asyncio.create_task(batcher.submit(work_of(3))) for _ in range(5)]
        await asyncio.sleep(0)
        encoder.go.set()
        await asyncio.gather(held, *others)

    _, encoder = run(test)
    assert encoder.batches == [[(1, 1)], [(1, 3)] * 5]


def test_a_short_request_does_not_wait_for_all_of_a_long_one() -> None:
    ended: list[str] = []

    async def test(batcher: Batcher, encoder: Encoder) -> None:
        async def ask(name: str, *lengths: int) -> None:
            await batcher.submit(work_of(*lengths))
            ended.append(name)

        held = await encoder.hold(batcher)
        long = asyncio.create_task(ask("long", *[10] * 10))
        await asyncio.sleep(0)
        short = asyncio.create_task(ask("short", 2))
        await asyncio.sleep(0)
        encoder.go.set()
        await asyncio.gather(held, long, short)

    run(test)
    assert ended == ["short", "long"]


def test_a_full_queue_refuses_with_the_time_to_come_back() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        held = await encoder.hold(batcher)
        waiting = asyncio.create_task(batcher.submit(work_of(*[10] * 19)))
        await asyncio.sleep(0)
        with pytest.raises(RefusalError) as full:
            await batcher.submit(work_of(*[10] * 7))
        assert full.value.status == 429
        assert full.value.retry_after is not None
        assert full.value.retry_after >= 1
        encoder.go.set()
        await asyncio.gather(held, waiting)
        await batcher.submit(work_of(10))

    run(test)


def test_inputs_are_counted_too() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        held = await encoder.hold(batcher)
        with pytest.raises(RefusalError) as full:
            await batcher.submit(work_of(1, 1, 1))
        assert full.value.status == 429
        encoder.go.set()
        await held

    run(test, queue_inputs=3)


def test_a_wait_that_would_be_too_long_is_refused_before_it_begins() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        await batcher.submit(work_of(10, 10))  # so that the encoder's rate is known
        held = await encoder.hold(batcher)
        with pytest.raises(RefusalError) as slow:
            await batcher.submit(work_of(1))
        assert slow.value.status == 429
        encoder.go.set()
        await held
        await batcher.submit(work_of(10))  # nothing waits: it may take what it takes

    run(test, wait=1e-12)


def test_small_batches_do_not_make_the_encoder_seem_slow() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        await batcher.submit(work_of(1))
        held = await encoder.hold(batcher)
        waiting = asyncio.create_task(batcher.submit(work_of(*[10] * 10)))
        await asyncio.sleep(0)
        encoder.go.set()
        await asyncio.gather(held, waiting)

    run(test, wait=1e-12)


def test_a_request_that_the_queue_can_never_hold_is_too_large() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        with pytest.raises(RefusalError) as large:
            await batcher.submit(work_of(*[10] * 21))
        assert large.value.status == 413

    run(test)


def test_a_batch_that_fails_fails_its_requests_only() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        encoder.error = ValueError("out of luck")
        with pytest.raises(RefusalError) as failed:
            await batcher.submit(work_of(*[10] * 5))
        assert failed.value.status == 500
        assert (await batcher.submit(work_of(2))).tolist() == [[0, 2]]

    batcher, encoder = run(test)
    assert not batcher.dead
    assert len(encoder.batches) == 2  # what was left of the failed one was not encoded


def test_a_thread_that_dies_leaves_nobody_waiting() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        held = await encoder.hold(batcher)
        waiting = asyncio.create_task(batcher.submit(work_of(1)))
        await asyncio.sleep(0)
        encoder.error = SystemExit()
        encoder.go.set()
        for task in (held, waiting):
            with pytest.raises(RefusalError) as failed:
                await task
            assert failed.value.status == 500
        with pytest.raises(RefusalError) as late:
            await batcher.submit(work_of(1))
        assert late.value.status == 503

    batcher, _ = run(test)
    assert batcher.dead


def test_what_nobody_waits_for_any_more_is_not_encoded() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        held = await encoder.hold(batcher)
        gone = asyncio.create_task(batcher.submit(work_of(7)))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        encoder.go.set()
        await held
        await batcher.submit(work_of(2))

    _, encoder = run(test)
    assert encoder.batches == [[(1, 1)], [(1, 2)]]


@pytest.mark.parametrize("client", ["ada", "bob"])
def test_a_long_request_does_not_lock_out_a_short_one(client: str) -> None:
    """Neither by the time that it takes nor by the room that it takes."""

    async def test(batcher: Batcher, encoder: Encoder) -> None:
        encoder.seconds = 0.01
        await batcher.submit(work_of(10, 10))  # so that the encoder's rate is known
        held = await encoder.hold(batcher)
        long = asyncio.create_task(batcher.submit(work_of(*[10] * 19)))
        await asyncio.sleep(0)
        short = asyncio.create_task(batcher.submit(work_of(2, client=client)))
        await asyncio.sleep(0)
        assert not short.done()
        encoder.go.set()
        await asyncio.gather(held, long, short)

    _, encoder = run(test, wait=0.05, queue_tokens=192, timeout=60.0)
    assert (1, 2) in encoder.batches[2]


def test_clients_share_the_encoder_evenly() -> None:
    """However many requests one of them sends."""
    ended: list[str] = []

    async def test(batcher: Batcher, encoder: Encoder) -> None:
        async def ask(client: str) -> None:
            await batcher.submit(work_of(*[5] * 8, client=client))
            ended.append(client)

        held = await encoder.hold(batcher)
        many = [asyncio.create_task(ask("many")) for _ in range(8)]
        await asyncio.sleep(0)
        one = asyncio.create_task(ask("one"))
        await asyncio.sleep(0)
        encoder.go.set()
        await asyncio.gather(held, *many, one)

    run(test, queue_tokens=1000, queue_inputs=1000)
    assert ended[0] == "one"


def test_short_requests_in_a_row_do_not_starve_a_long_one() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        long = asyncio.create_task(batcher.submit(work_of(*[5] * 12)))
        await asyncio.sleep(0)

        async def stream() -> None:
            while not long.done():
                await batcher.submit(work_of(5, 5, client="bob"))

        await asyncio.gather(*(stream() for _ in range(8)))

    run(test)


def test_what_cannot_end_in_time_is_refused_at_once() -> None:
    async def test(batcher: Batcher, encoder: Encoder) -> None:
        encoder.seconds = 0.1
        await batcher.submit(work_of(10, 10))  # so that the encoder's rate is known
        batches = len(encoder.batches)
        with pytest.raises(RefusalError) as slow:
            await batcher.submit(work_of(*[10] * 19))
        assert slow.value.status == 413
        assert len(encoder.batches) == batches
        await batcher.submit(work_of(10, 10))

    run(test, timeout=0.5, wait=0.4)


def test_what_proves_too_long_for_its_time_is_given_up() -> None:
    """Before its time is over, while the encoder's rate was not known when it came."""

    async def test(batcher: Batcher, encoder: Encoder) -> None:
        encoder.seconds = 0.2
        with pytest.raises(RefusalError) as slow:
            await batcher.submit(work_of(*[10] * 19))
        assert slow.value.status == 413

    _, encoder = run(test, timeout=0.8, wait=0.4)
    assert len(encoder.batches) <= 2


def test_a_slow_moment_refuses_nothing_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher_module, "RATE_SECONDS", 0.05)

    async def test(batcher: Batcher, encoder: Encoder) -> None:
        encoder.seconds = 0.1
        await batcher.submit(work_of(10, 10))
        encoder.seconds = 0.0
        await asyncio.sleep(0.1)
        await batcher.submit(work_of(*[10] * 19))

    run(test, timeout=0.8, wait=0.4)
