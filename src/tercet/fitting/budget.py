"""The time that a fit may take, and what fits into it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tercet.fitting.planning import LEAST_STEPS, Settings

TRAINING = 3.5
"""How many times longer training on a row takes than encoding it."""
USED = 0.85
"""The share of the minutes that is planned with."""
LEAST_EPOCHS = 0.2
NO_TIME = "Not enough time to tune the encoder: heads are fitted to it as it is."


class Budget:
    """The seconds of a fit, which begin with it.

    clock: seconds that never go back
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._began = clock()

    @property
    def spent(self) -> float:
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds that may still be planned with."""
        return USED * self.seconds - self.spent

    def epochs(self, settings: Settings, encoding: float, *, trainings: int) -> float:
        """How many epochs fit into the time that is left, at most those of the settings; 0 if that
        is too few to tune the encoder.

        encoding: seconds to encode all rows once
        trainings: how often all rows are trained on; with folds, the last is on all of them
        """
        # Stages of fewer steps are made longer, whatever their epochs.
        shortest = LEAST_STEPS / settings.batches
        # A coarse clock may see no time pass for a few rows.
        cost = TRAINING * encoding * trainings
        possible = self.left / cost if cost > 0.0 else math.inf
        if possible < max(LEAST_EPOCHS, shortest):
            return 0.0
        return min(settings.epochs, possible)
