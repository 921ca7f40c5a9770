"""Work that is done ahead in other threads, such as tokenising while a GPU encodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
R = TypeVar("R")
THREADS = 2
"""One thread alone would leave the tokenizer's own threads idle while it turns ids into arrays."""


def ahead(work: Callable[[Item], R], items: Iterable[Item]) -> Iterator[R]:
    """The results of `work` in order; those of the next items are made while one is used."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="tercet-ahead") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
