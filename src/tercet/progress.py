"""How long work reports how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Progress(Protocol):
    """Called with the number of items done and, where it is known, their total."""

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None: ...


Start = Callable[[str], AbstractContextManager[Progress]]
"""Begins a phase of the work, by its name."""


def silent(done: int, total: int | None = None, *, note: str = "") -> None:
    """A progress that shows nothing."""


@contextmanager
def silent_start(what: str) -> Iterator[Progress]:
    """Begins a phase that shows nothing."""
    yield silent
