"""Whether trainings end in time, by how long their steps take."""

from __future__ import annotations

import math

from tercet.fitting.budget import TRAINING, USED, Budget
from tercet.fitting.following import Joined
from tercet.fitting.planning import Settings

FIRST = 5
"""Steps before anything is said about the others."""
RECENT = 10
AFTER = 2.0
"""How often all rows are encoded after tuning: to fit heads, to calibrate and to measure."""
LEAST = 5
"""Steps that a training still has after it was shortened: the learning rate falls in them."""


class OutOfTimeError(Exception):
    """Trainings take longer than there is time for.

    encoding: seconds to encode all rows once, at the pace so far
    """

    def __init__(self, encoding: float) -> None:
        self.encoding = encoding


class Deadline:
    """Watches the steps of one or more trainings.

    Nothing depends on time as long as all steps end within it.
    """

    def __init__(self, budget: Budget, settings: Settings) -> None:
        self._budget = budget
        self._batches = settings.batches
        self._before = self._planned = self._current = 0
        self._points: list[tuple[int, float]] = []
        """Steps of all trainings, and the time at which they were done."""

    def note(self, done: int, planned: int) -> int:
        """After a step of a training; how many steps of all trainings are done."""
        if done <= self._current:
            self._before += self._planned
        self._current, self._planned = done, planned
        self._points.append((self._before + done, self._budget.spent))
        return self._before + done

    def is_missed(self, steps_left: int) -> bool:
        """Whether so many steps, and what comes after them, take too long at the pace so far."""
        if self._points[-1][0] - self._points[0][0] < FIRST:
            return False
        seconds = self._seconds_per_step(self._points[0]) * (steps_left + self._steps_after)
        return self._budget.spent + seconds > self._budget.seconds

    def possible_steps(self) -> int:
        """How many more steps fit into the time, with some to spare; at least a few."""
        seconds = USED * (self._budget.seconds - self._budget.spent)
        return max(LEAST, math.floor(seconds / self._slower - self._steps_after))

    @property
    def encoding(self) -> float:
        """Seconds to encode all rows once."""
        return self._slower * self._batches / TRAINING

    @property
    def _slower(self) -> float:
        """Seconds per step, of all steps or of the last ones: whichever is more."""
        last = self._points[-1][0]
        recent = next(point for point in reversed(self._points) if self._is_before(point, last))
        return max(self._seconds_per_step(self._points[0]), self._seconds_per_step(recent))

    def _is_before(self, point: tuple[int, float], last: int) -> bool:
        return point[0] <= last - RECENT or point == self._points[0]

    @property
    def _steps_after(self) -> float:
        """What comes after tuning, in steps."""
        return AFTER * self._batches / TRAINING

    def _seconds_per_step(self, since: tuple[int, float]) -> float:
        steps, when = self._points[-1]
        return (when - since[1]) / max(1, steps - since[0])

    def check(self, done: int, planned: int, *, total: int) -> None:
        """Raise if all trainings, of so many steps in total, do not end in time."""
        if self.is_missed(total - self.note(done, planned)):
            raise OutOfTimeError(self.encoding)

    def shorten(self, done: int, planned: int, *, following: Joined) -> int | None:
        """A lower number of steps for a training that does not end in time."""
        self.note(done, planned)
        if not self.is_missed(planned - done):
            return None
        steps = done + self.possible_steps()
        if steps >= planned:
            return None
        following.shorten(planned - steps)
        following.tell(
            f"Training is slower than planned: it is shortened from {planned} to {steps} steps, to "
            f"end within {self._budget.seconds / 60.0:g} minutes."
        )
        return steps
