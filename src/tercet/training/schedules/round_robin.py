"""Batch by batch in order, until every task in it has been walked once."""

from __future__ import annotations

import numpy as np

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span, one_hot


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    tasks = list(span.batches)
    order = spec.order or tasks
    left = {task: span.batches[task] for task in order}
    sequence: list[int] = []
    while any(count > 0 for count in left.values()):
        for task in order:
            if left[task] > 0 or spec.walk == "cycle":
                sequence.append(tasks.index(task))
                left[task] -= 1
    return span.repeat(one_hot(np.array(sequence), len(tasks)))
