"""How long work reports how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the number of items done and, where it is known, their total."""

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None: ...


def silent(done: int, total: int | None = None, *, note: str = "") -> None:
    """A progress that shows nothing."""
