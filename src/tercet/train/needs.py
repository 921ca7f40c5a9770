"""Which task needs training most: the one whose dev score lags furthest behind its goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tercet.evaluate.scoring import score_of
from tercet.folders.model_card import Metrics
from tercet.specs import TaskSpec


def neediest(
    dev: Metrics,
    specs: Mapping[str, TaskSpec],
    *,
    tasks: Sequence[str],
    goals: Mapping[str, float] | None,
) -> int:
    """The place among `tasks` of the one whose score lags most, as a share of its goal."""
    lags = []
    for task in tasks:
        score = score_of(dev, specs, f"{task}.{specs[task].chosen_metric}")
        lags.append(1.0 - score / (goals or {}).get(task, 1.0))
    return max(range(len(tasks)), key=lags.__getitem__)
