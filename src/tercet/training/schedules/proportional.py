"""Every batch of every task once per epoch, shuffled."""

from __future__ import annotations

import numpy as np

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span, one_hot


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    counts = list(span.batches.values())
    epoch = one_hot(np.repeat(np.arange(len(counts)), counts), len(counts))
    total = span.total(len(epoch))
    generators = (
        np.random.default_rng([*span.seed, 0, number]) for number in range(-(-total // len(epoch)))
    )
    walk = np.concatenate([generator.permutation(epoch) for generator in generators])
    return walk[:total], len(epoch)
