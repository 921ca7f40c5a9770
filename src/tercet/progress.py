"""How long work reports how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """Called with the number of items done and, where it is known, their total."""

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None: ...


def silent(done: int, total: int | None = None, *, note: str = "") -> None:
    """A progress that shows nothing."""


Phases = Callable[[str], AbstractContextManager[Progress]]
"""Starts the progress of one phase of the work, by its name."""


def silent_phases(what: str) -> AbstractContextManager[Progress]:
    """Phases that show nothing."""
    return nullcontext(silent)
