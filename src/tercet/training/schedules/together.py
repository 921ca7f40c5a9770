"""A batch of every task in each step."""

from __future__ import annotations

import numpy as np

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    longest = max(span.batches.values())
    ends = [longest if spec.walk == "cycle" else count for count in span.batches.values()]
    return span.repeat(np.arange(longest)[:, None] < np.array(ends))
