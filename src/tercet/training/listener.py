"""Listeners: what a run reports while it trains."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tercet.folders.model_card import Metrics
from tercet.progress import PlainText, Progress, is_watched, silent_phases


class Listener(Protocol):
    """Receives everything that a user may want to follow."""

    def say(self, sentence: str) -> None: ...
    def working(self, what: str) -> AbstractContextManager[Progress]:
        """Around long work before a stage."""
        ...

    def begin_stage(self, name: str, *, steps: int, done: int) -> None: ...
    def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None: ...
    def scores(self, *, step: int, dev: Metrics, score: float, best: bool) -> None: ...
    def end_stage(self) -> None: ...
    def interrupted(self, step: int) -> None:
        """Training stopped and was saved after this step of the run."""


class Silent:
    """A listener that shows nothing, as on all processes but the main one."""

    def say(self, sentence: str) -> None: ...
    def working(self, what: str) -> AbstractContextManager[Progress]:
        return silent_phases(what)

    def begin_stage(self, name: str, *, steps: int, done: int) -> None: ...
    def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None: ...
    def scores(self, *, step: int, dev: Metrics, score: float, best: bool) -> None: ...
    def end_stage(self) -> None: ...
    def interrupted(self, step: int) -> None: ...


class Phase(Protocol):
    """Starts the progress of one phase of the work, by its name and, if known, its length."""

    def __call__(
        self, what: str, *, total: int | None = None
    ) -> AbstractContextManager[Progress]: ...


class Shown:
    """Shows a run: progress with losses, rate and time left, and one line per score.

    say, phase: how sentences and progress are shown
    resume: how to resume an interrupted run
    """

    def __init__(
        self, *, say: Callable[[str], None], phase: Phase, resume: str = "`resume=True`"
    ) -> None:
        self.say = say
        self._phase = phase
        self._resume = resume
        self._open: AbstractContextManager[Progress] | None = None
        self._report: Progress | None = None
        self._steps = self._done = self._rows = 0
        self._since = time.monotonic()
        self._recent: dict[str, float] = {}

    def working(self, what: str) -> AbstractContextManager[Progress]:
        return self._phase(what)

    def begin_stage(self, name: str, *, steps: int, done: int) -> None:
        self._steps, self._done = steps, done
        self._rows, self._since = 0, time.monotonic()
        self._recent = {}
        self._open = self._phase(f"stage {name}", total=steps)
        self._report = self._open.__enter__()

    def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None:
        for line in lines:
            for task, loss in line["loss"].items():
                before = self._recent.get(task, loss)
                self._recent[task] = 0.95 * before + 0.05 * loss
        self._done += len(lines)
        self._rows += rows
        rate = self._rows / max(1e-9, time.monotonic() - self._since)
        losses = ", ".join(f"{task} {loss:.4f}" for task, loss in self._recent.items())
        if self._report is not None:
            self._report(self._done, self._steps, note=f"{losses}, {rate:.0f} rows/s")

    def scores(self, *, step: int, dev: Metrics, score: float, best: bool) -> None:
        values = ", ".join(
            f"{task} {mode} {metric} " + ("undefined" if value is None else f"{value:.4f}")
            for task, modes in dev.items()
            for mode, metrics in modes.items()
            for metric, value in metrics.items()
        )
        self.say(
            f"dev after step {step}: score {score:.4f}{' (best so far)' if best else ''}: {values}"
        )

    def end_stage(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = self._report = None

    def interrupted(self, step: int) -> None:
        self.say(f"Stopped and saved after step {step}; continue with {self._resume}.")


def listener_of(listener: Listener | None, *, progress: bool | None) -> Listener:
    """The listener that is given, or else one that shows plain text or nothing.

    progress: whether to show it; None: if somebody watches
    """
    if listener is not None:
        return listener
    if not (is_watched() if progress is None else progress):
        return Silent()
    text = PlainText()
    return Shown(say=text.say, phase=text.phase)
