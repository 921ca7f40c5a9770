"""The one place that makes consoles: stdout for results, stderr for talk."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

from rich import progress as bars
from rich.console import Console
from rich.table import Table

RESULTS = Console(highlight=False, markup=False)
TALK = Console(stderr=True, highlight=False, markup=False)
SECONDS_BETWEEN_LINES = 5.0


class Report(Protocol):
    """How long work tells how far it is."""

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None: ...


def say(line: str) -> None:
    """One line of talk, never wrapped."""
    TALK.print(line, soft_wrap=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A drawn table on a terminal; in a pipe a line of names and a line a row, tabs between."""
    if not RESULTS.is_terminal:
        for row in (columns, *rows):
            print("\t".join(" ".join(str(cell).split()) for cell in row))
        return
    table = Table(*columns, header_style="bold", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    RESULTS.print(table)


@contextmanager
def progress(what: str, *, total: int | None = None) -> Iterator[Report]:
    """Gives a function to call with how much is done: a bar on a terminal, else lines at times."""
    if TALK.is_terminal:
        with _bar() as bar:
            task = bar.add_task(what, total=total, note="")

            def move(done: int, total: int | None = None, *, note: str = "") -> None:
                bar.update(task, completed=done, total=total, note=note)

            yield move
    else:
        lines = _Lines(what, total)
        yield lines
        lines.finish()


def _bar() -> bars.Progress:
    return bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[note]}"),
        console=TALK,
    )


class _Lines:
    """Progress where nothing can be drawn over: a plain line every few seconds."""

    def __init__(self, what: str, total: int | None) -> None:
        self.what = what
        self.total = total
        self.start = self.last = time.monotonic()
        self.done = 0
        self.note = ""
        self.untold = False

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None:
        if done < self.done:  # other work has begun, which says nothing of how long this takes
            self.start = time.monotonic()
        self.done, self.total, self.note = done, total or self.total, note
        self.untold = True
        if time.monotonic() - self.last >= SECONDS_BETWEEN_LINES:
            self._tell()

    def finish(self) -> None:
        if self.untold:
            self._tell()

    def _tell(self) -> None:
        self.last = time.monotonic()
        self.untold = False
        parts = [f"{self.done} of {self.total}" if self.total else str(self.done)]
        if self.total and 0 < self.done < self.total:
            left = (self.last - self.start) * (self.total - self.done) / self.done
            parts.append(f"{timedelta(seconds=round(left))} left")
        parts += [self.note] if self.note else []
        say(f"{self.what}: {', '.join(parts)}")
