"""How long work reports how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Protocol

SECONDS_BETWEEN_UPDATES = 0.3


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


def is_watched() -> bool:
    """Whether somebody follows this process: in a notebook, an interactive session or a
    terminal."""
    if hasattr(sys, "ps1") or "ipykernel" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


class Pace:
    """How long the rest of some work takes, at its rate since the first report of something done.

    What comes before that, such as reading texts or compiling, happens once and would count for
    every item.
    """

    def __init__(self) -> None:
        self._first = self._last = 0
        self._start = 0.0

    def time_left(self, *, done: int, total: int | None, now: float) -> str:
        """`now` in seconds; empty where it is not known."""
        if self._first == 0 or done < self._last:  # nothing was done before, or other work begins
            self._first, self._start = done, now
        self._last = done
        if not total or not self._first < done < total:
            return ""
        rate = (done - self._first) / max(now - self._start, 1e-9)
        return f"{timedelta(seconds=round((total - done) / rate))} left"


class PlainText:
    """Messages and progress as plain text on stderr, for notebooks and Python sessions.

    Progress is one line that is overwritten a few times per second.
    """

    def __init__(self) -> None:
        self._shown = 0  # characters of the line that the next one overwrites

    def say(self, sentence: str) -> None:
        self._write("")
        print(sentence, file=sys.stderr, flush=True)

    @contextmanager
    def phase(self, what: str, *, total: int | None = None) -> Iterator[Progress]:
        """The progress of one phase of the work; its last state stays on screen."""
        expected, last, line, pace = total, 0.0, "", Pace()

        def move(done: int, total: int | None = None, *, note: str = "") -> None:
            nonlocal last, line
            now = time.monotonic()
            known = total or expected
            parts = [f"{done:,} of {known:,}" if known else f"{done:,}"]
            parts += [pace.time_left(done=done, total=known, now=now), note]
            line = f"{what}: {', '.join(part for part in parts if part)}"
            if now - last >= SECONDS_BETWEEN_UPDATES:
                last = now
                self._write(line)

        self._write(what)
        try:
            yield move
        finally:
            self._write("")
            if line:
                print(line, file=sys.stderr, flush=True)

    def _write(self, line: str) -> None:
        if not line and not self._shown:
            return
        blank = " " * (self._shown - len(line))
        # A notebook does not know how to clear a line: blanks do.
        print(f"\r{line}{blank}", end="" if line else "\r", file=sys.stderr, flush=True)
        self._shown = len(line)


def plain_phases(what: str) -> AbstractContextManager[Progress]:
    """Phases as plain text on stderr."""
    return PlainText().phase(what)
