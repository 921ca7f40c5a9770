"""The terminal: stdout for results, stderr for messages."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich import progress as bars
from rich.console import Console
from rich.table import Table

from tercet.errors import printable
from tercet.progress import Pace, Progress

RESULTS = Console(highlight=False, markup=False)
MESSAGES = Console(stderr=True, highlight=False, markup=False)
SECONDS_BETWEEN_LINES = 5.0


def print_message(line: str) -> None:
    """Print one line on stderr, never wrapped."""
    MESSAGES.print(printable(line), soft_wrap=True)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, console: Console = RESULTS
) -> None:
    """Print a table on a terminal; in a pipe, tab-separated lines of names and rows."""
    if not console.is_terminal:
        for row in (columns, *rows):
            line = "\t".join(printable(" ".join(str(cell).split())) for cell in row)
            print(line, file=console.file)
        return
    table = Table(*columns, header_style="bold", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    console.print(table)


@contextmanager
def progress(what: str, *, total: int | None = None) -> Iterator[Progress]:
    """Show progress: a bar on a terminal, else a line every few seconds."""
    if MESSAGES.is_terminal:
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
        console=MESSAGES,
    )


class _Lines:
    """Progress without a terminal: a plain line every few seconds."""

    def __init__(self, what: str, total: int | None) -> None:
        self.what = what
        self.total = total
        self.start = self.last = time.monotonic()
        self.done = 0
        self.left = self.note = ""
        self.pace = Pace()
        self.pending = False

    def __call__(self, done: int, total: int | None = None, *, note: str = "") -> None:
        now = time.monotonic()
        self.done, self.total, self.note = done, total or self.total, note
        self.left = self.pace.time_left(done=done, total=self.total, now=now)
        self.pending = True
        # Work that takes long is followed less closely.
        pause = max(SECONDS_BETWEEN_LINES, (self.last - self.start) / 5)
        if now - self.last >= pause:
            self._print()

    def finish(self) -> None:
        if self.pending:
            self._print()

    def _print(self) -> None:
        self.last = time.monotonic()
        self.pending = False
        parts = [f"{self.done} of {self.total}" if self.total else str(self.done)]
        parts += [self.left, self.note]
        print_message(f"{self.what}: {', '.join(part for part in parts if part)}")
