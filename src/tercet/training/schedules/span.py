"""What schedules are given and what they share.

A schedule is a function `present(spec, span)`: which tasks each step trains, bool [steps, tasks],
and the number of steps per epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.specs import ScheduleSpec

Presence = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Span:
    """The data and the length of a stage.

    sizes, batches: rows and batches in one pass over each task
    epochs, steps: the length, by one of the two
    """

    sizes: Mapping[str, int]
    batches: Mapping[str, int]
    epochs: float | None
    steps: int | None
    seed: tuple[int, ...]

    def total(self, steps_per_epoch: int) -> int:
        """The number of steps of the stage."""
        if self.steps is not None:
            return self.steps
        return max(1, round((self.epochs or 1) * steps_per_epoch))

    def repeat(self, epoch: Presence) -> tuple[Presence, int]:
        """The same epoch, bool [steps per epoch, tasks], until the stage ends."""
        total = self.total(len(epoch))
        return np.tile(epoch, (-(-total // len(epoch)), 1))[:total], len(epoch)


def one_hot(chosen: NDArray[np.int64], tasks: int) -> Presence:
    """One task per step, by its index."""
    hot: Presence = chosen[:, None] == np.arange(tasks)
    return hot


def draw_tasks(
    spec: ScheduleSpec, span: Span, likelihoods: Callable[[float], Sequence[float]]
) -> tuple[Presence, int]:
    """Tasks drawn at random; `likelihoods` gives those at a share (0 to 1) of the stage."""
    length = spec.steps_per_epoch or sum(span.batches.values())
    total = span.total(length)
    likely = np.array([likelihoods(step / max(1, total - 1)) for step in range(total)])
    bounds = np.cumsum(likely / likely.sum(axis=1, keepdims=True), axis=1)
    draws = np.random.default_rng([*span.seed, 0]).random((total, 1))
    chosen = np.minimum((draws >= bounds).sum(axis=1), len(span.sizes) - 1)
    return one_hot(chosen, len(span.sizes)), length
