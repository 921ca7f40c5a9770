"""The time that a fit may take, and what fits into it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tercet.fitting.planning import LEAST_STEPS, Settings

TRAINING = 3.5
"""How many times longer training on a row takes than encoding it."""
AFTER = 2.0
"""How often all rows are encoded after tuning: to fit heads, to calibrate and to measure."""
READ = 1.0 + AFTER
"""How often all rows are encoded besides; once before tuning."""
USED = 0.85
"""The share of the minutes that is planned with."""
LEAST_EPOCHS = 0.2
LEAST_DRAWN = 5000
"""Rows that are used however little time there is."""
UNTUNED = "the encoder was not tuned, and only heads were fitted to it"
LIMITED = "Time limited this model"
NO_TIME = "Not enough time to tune the encoder: heads are fitted to it as it is."


class Budget:
    """The seconds of a fit, which begin with it.

    clock: seconds that never go back
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._began = clock()
        self._left_out: dict[str, None] = {}
        self._needed = 0.0

    @property
    def spent(self) -> float:
        return self._clock() - self._began

    @property
    def left(self) -> float:
        """Seconds that may still be planned with."""
        return USED * self.seconds - self.spent

    def leave_out(self, what: str, *, needed: float) -> None:
        """Note what there is no time for, and how many seconds of a fit would have sufficed."""
        self._left_out[what] = None
        self._needed = max(self._needed, needed)

    @property
    def shortage(self) -> str | None:
        """What was left out for lack of time, in a sentence; None if nothing was."""
        if not self._left_out:
            return None
        given = self.seconds / 60.0
        # More than were given, since these did not suffice.
        minutes = max(math.ceil(self._needed / 60.0), math.floor(given) + 1)
        about = f"{minutes} minute{'s' if minutes > 1 else ''}"
        return (
            f"{LIMITED}: {'; '.join(self._left_out)}. About {about} would "
            f"have sufficed here, instead of {given:g}: fit again with `--minutes {minutes}`, or "
            f"`minutes={minutes}` in Python."
        )

    def full_seconds(self, settings: Settings, encoding: float, *, trainings: int) -> float:
        """The seconds of a fit, from its beginning, that leave nothing out.

        encoding, trainings: as for `epochs`
        """
        epochs = max(settings.epochs, LEAST_STEPS / settings.batches)
        return (self.spent + TRAINING * encoding * trainings * epochs) / USED

    def rows(self, settings: Settings, encoding: float) -> int:
        """How many of the rows there is time for: to tune the encoder on each once, and to read it
        as often as a fit does.

        encoding: seconds to encode all rows once
        """
        cost = (TRAINING + READ) * encoding
        possible = settings.rows * self.left / cost if cost > 0.0 else math.inf
        return settings.rows if possible >= settings.rows else max(LEAST_DRAWN, int(possible))

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
