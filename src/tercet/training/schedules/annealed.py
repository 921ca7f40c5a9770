"""Tasks drawn by size at first, nearly equally in the end."""

from __future__ import annotations

from tercet.specs import ScheduleSpec
from tercet.training.schedules.span import Presence, Span, draw_tasks

# BERT and PALs (Stickland and Murray, 2019) let the exponent of the sizes fall from 1 to 0.2.
LAST_EXPONENT = 0.2


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    def likelihoods(share: float) -> list[float]:
        exponent = 1.0 - (1.0 - LAST_EXPONENT) * share
        return [float(size) ** exponent for size in span.sizes.values()]

    return draw_tasks(spec, span, likelihoods)
