"""Tasks drawn at random for each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tercet.specs import ScheduleSpec
from tercet.train.schedules.span import Presence, Span, one_hot


def draw_tasks(
    spec: ScheduleSpec, span: Span, likelihoods: Callable[[float], Sequence[float]]
) -> tuple[Presence, int]:
    """`likelihoods` gives those of the tasks at a share (0 to 1) of the stage."""
    length = spec.steps_per_epoch or sum(span.batches.values())
    total = span.total(length)
    likely = np.array([likelihoods(step / max(1, total - 1)) for step in range(total)])
    bounds = np.cumsum(likely / likely.sum(axis=1, keepdims=True), axis=1)
    draws = np.random.default_rng([*span.seed, 0]).random((total, 1))
    chosen = np.minimum((draws >= bounds).sum(axis=1), len(span.sizes) - 1)
    return one_hot(chosen, len(span.sizes)), length
