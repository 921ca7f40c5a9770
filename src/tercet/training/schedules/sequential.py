"""Whole passes over the tasks, in order."""

from __future__ import annotations

import numpy as np

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span, one_hot


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    tasks = list(span.batches)
    order = [tasks.index(task) for task in spec.order or tasks]
    sequence = [index for index in order for _ in range(span.batches[tasks[index]])]
    return span.repeat(one_hot(np.array(sequence), len(tasks)))
