"""Tasks drawn by weights."""

from __future__ import annotations

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span, draw_tasks


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    weights = [(spec.weights or {}).get(task, 1.0) for task in span.sizes]
    return draw_tasks(spec, span, lambda share: weights)
