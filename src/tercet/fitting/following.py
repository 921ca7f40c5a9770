"""What a user sees of the trainings of a fit: one progress with the time that is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tercet.progress import Progress, silent_phases
from tercet.training.listener import Listener


class Joined:
    """Shows several trainings as one progress, and of what they say only what users need.

    steps: how many steps they have together, about
    """

    def __init__(self, listener: Listener, progress: Progress, *, steps: int) -> None:
        self._listener = listener
        self._progress = progress
        self._expected = steps
        self._done = self._stage_end = 0
        self.note = ""
        self._shown: tuple[int, int, str] | None = None
        self._show()

    def say(self, sentence: str) -> None:
        if sentence.startswith("Calibrating ") or "baselines" in sentence:
            self._listener.say(sentence)

    def tell(self, sentence: str) -> None:
        """Show a sentence of the fit itself."""
        self._listener.say(sentence)

    def shorten(self, steps: int) -> None:
        """The training has so many steps less."""
        self._expected -= steps
        self._stage_end -= steps
        self._show()

    def lengthen(self, steps: int) -> None:
        """So many steps are done besides those that were expected."""
        self._expected += steps
        self._show()

    def working(self, what: str) -> AbstractContextManager[Progress]:
        return silent_phases(what)

    def begin_stage(self, name: str, *, steps: int, done: int) -> None:
        self._stage_end = self._done + steps - done
        self._show()

    def steps(self, lines: list[dict[str, Any]], *, rows: int) -> None:
        self._done += len(lines)
        self._show()

    def scores(self, **score: object) -> None: ...
    def end_stage(self) -> None:
        # Heads that are solved report no step.
        self._done = self._stage_end
        self._show()

    def interrupted(self, step: int) -> None: ...

    def finish(self) -> None:
        self._expected = self._done = self._done or 1
        self._show()

    def _show(self) -> None:
        state = (self._done, max(self._expected, self._done), self.note)
        if state != self._shown:
            self._shown = state
            self._progress(state[0], state[1], note=self.note)


@contextmanager
def joined(listener: Listener, what: str, *, steps: int) -> Iterator[Joined]:
    """One progress for all trainings inside."""
    with listener.working(what) as progress:
        together = Joined(listener, progress, steps=steps)
        yield together
        together.finish()
