"""Threads that encode batches side by side, each on one core, so that none waits for another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import cache
from threading import Barrier
from typing import TypeVar

B = TypeVar("B")
R = TypeVar("R")


def side_by_side(
    work: Callable[[B], R],
    batches: Sequence[B],
    *,
    threads: int,
    begin: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """What `work` gives for every batch, in the order in which they end.

    begin: called once in every thread
    """
    pool = _pool(threads, begin)
    return _results([pool.submit(work, batch) for batch in batches])


def _results(waiting: Sequence[Future[R]]) -> Iterator[R]:
    try:
        for future in as_completed(waiting):
            yield future.result()
    finally:
        for future in waiting:
            future.cancel()


@cache
def _pool(threads: int, begin: Callable[[], None]) -> ThreadPoolExecutor:
    """A pool whose threads have all begun."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tercet", initializer=begin)
    all_here = Barrier(threads)
    for future in [pool.submit(all_here.wait) for _ in range(threads)]:
        future.result()
    return pool


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    # Threads do not survive a fork: a child starts its own.
    os.register_at_fork(after_in_child=_pool.cache_clear)
