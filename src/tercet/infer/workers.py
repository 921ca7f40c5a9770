"""Threads that encode batches in parallel, each on one core, so that none waits for another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import cache
from threading import Barrier
from typing import TypeVar

B = TypeVar("B")
R = TypeVar("R")


def in_parallel(
    work: Callable[[B], R],
    batches: Sequence[B],
    *,
    threads: int,
    initialise: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """The results of `work` for every batch, in the order in which they finish.

    initialise: called once in every thread
    """
    pool = _pool(threads, initialise)
    return _results([pool.submit(work, batch) for batch in batches])


def _results(futures: Sequence[Future[R]]) -> Iterator[R]:
    try:
        for future in as_completed(futures):
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


@cache
def _pool(threads: int, initialise: Callable[[], None]) -> ThreadPoolExecutor:
    """A pool whose threads have all started."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tercet", initializer=initialise)
    started = Barrier(threads)
    for future in [pool.submit(started.wait) for _ in range(threads)]:
        future.result()
    return pool


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    # Threads do not survive a fork: a child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
