"""Tasks drawn by a power of their sizes."""

from __future__ import annotations

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span, draw_tasks


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    likely = [float(size) ** (1.0 / spec.temperature) for size in span.sizes.values()]
    return draw_tasks(spec, span, lambda share: likely)
