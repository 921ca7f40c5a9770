"""Whether trainings end in time, by how long their steps take."""

from __future__ import annotations

import math

from tercet.fitting.budget import AFTER, TRAINING, USED, Budget
from tercet.fitting.following import Joined
from tercet.fitting.planning import LEAST_STEPS, Settings

FIRST = 5
"""Steps before anything is said about the others."""
RECENT = 10
LEAST, SHARE = 5, 0.25
"""Of the steps of a training that is shortened, those in which the learning rate then falls: at
least a few, or this share."""
FALLBACKS = (1.0, 0.5, 0.25)
"""Shares of the epochs with which one part of the rows may still judge."""


class OutOfTimeError(Exception):
    """Trainings take longer than there is time for.

    encoding: seconds to encode all rows once, at the pace so far
    needed: seconds of a fit, from its beginning, that would have sufficed
    """

    def __init__(self, encoding: float, *, needed: float) -> None:
        self.encoding = encoding
        self.needed = needed


class Deadline:
    """Watches the steps of one or more trainings.

    It acts at the last moment: a machine that is slow for a while does no harm, and nothing depends
    on time as long as all steps end within it.
    """

    def __init__(self, budget: Budget, settings: Settings) -> None:
        self._budget = budget
        self._batches = settings.batches
        shorter = [share * settings.epochs * settings.batches for share in FALLBACKS]
        self._fallbacks = [*(max(LEAST_STEPS, each) + FIRST for each in shorter), self._steps_after]
        """Steps' time that other ways to end need, the best first; the last is the linear model."""
        self._fitted = [False] * len(self._fallbacks)
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
        """Whether so many steps, and what comes after them, take too long: at the pace of all steps
        so far, and at that of the last ones."""
        if self._points[-1][0] - self._points[0][0] < FIRST:
            return False
        seconds = min(self._paces) * (steps_left + self._steps_after)
        return self._budget.spent + seconds > self._budget.seconds

    def possible_steps(self) -> int:
        """How many more steps fit into the time, with some to spare."""
        seconds = USED * (self._budget.seconds - self._budget.spent)
        return math.floor(seconds / max(self._paces) - self._steps_after)

    def _needed(self, steps_left: int) -> float:
        """Seconds of a fit in which so many more steps are done too."""
        return (self._budget.spent + max(self._paces) * (steps_left + self._steps_after)) / USED

    @property
    def encoding(self) -> float:
        """Seconds to encode all rows once."""
        return max(self._paces) * self._batches / TRAINING

    @property
    def _paces(self) -> tuple[float, float]:
        """Seconds per step, of all steps and of the last ones."""
        last = self._points[-1][0]
        recent = next(point for point in reversed(self._points) if self._is_before(point, last))
        return self._seconds_per_step(self._points[0]), self._seconds_per_step(recent)

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
        """Raise if all trainings, of so many steps in total, do not end in time, once there is just
        time for another way to end."""
        left = total - self.note(done, planned)
        is_missed = self.is_missed(left)
        before, pace = self._fitted, max(self._paces)
        self._fitted = [pace * steps <= self._budget.left for steps in self._fallbacks]
        is_lost = any(was and not is_ for was, is_ in zip(before, self._fitted, strict=True))
        if is_missed and (is_lost or not self._fitted[-1]):
            raise OutOfTimeError(self.encoding, needed=self._needed(left))

    def shorten(self, done: int, planned: int, *, following: Joined) -> int | None:
        """A lower number of steps for a training that does not end in time, once there is just time
        for the learning rate to fall."""
        self.note(done, planned)
        last = max(LEAST, math.floor(SHARE * planned))
        if not self.is_missed(planned - done) or self.possible_steps() > last:
            return None
        steps = done + max(LEAST, self.possible_steps())
        if steps >= planned:
            return None
        self._budget.leave_out(
            f"the training was shortened from {planned} to {steps} steps",
            needed=self._needed(planned - done),
        )
        following.shorten(planned - steps)
        following.tell(
            f"Training is slower than planned: it is shortened from {planned} to {steps} steps, to "
            f"end within {self._budget.seconds / 60.0:g} minutes."
        )
        return steps
