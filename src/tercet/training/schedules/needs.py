"""From one score on dev to the next, the task furthest behind its goal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tercet.evaluation.scoring import score_of
from tercet.folders.model_card import Metrics
from tercet.specs import ScheduleSpec, TaskSpec
from tercet.training.schedules.span import Presence, Span, one_hot


def present(spec: ScheduleSpec, span: Span) -> tuple[Presence, int]:
    """The tasks in turn, as it is until the first score."""
    length = spec.steps_per_epoch or sum(span.batches.values())
    count = len(span.sizes)
    return one_hot(np.arange(span.total(length)) % count, count), length


def neediest(spec: ScheduleSpec, dev: Metrics, tasks: Mapping[str, TaskSpec]) -> str:
    """The task whose score is furthest behind its goal, as a share of the goal."""

    def lag(task: str) -> float:
        score = score_of(dev, tasks, f"{task}.{tasks[task].chosen_metric}")
        return 1.0 - score / (spec.goals or {}).get(task, 1.0)

    return max(tasks, key=lag)
