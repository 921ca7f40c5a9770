"""Reranking: hits of the bi mode, scored by the cross mode, which reads both texts together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tercet.errors import TercetError
from tercet.model import Model, PairMode
from tercet.search.hits import Hit
from tercet.specs import Floats, TaskSpec

TO_ORDER = ("ranking", "similarity", "paraphrase")
"""The tasks that can order hits, the preferred one first: what was trained for it; then a grade,
which orders better than a probability, which is high for all good candidates."""
TO_DECIDE = ("paraphrase", "similarity")
"""The tasks that can tell which pairs mean the same: a probability decides better."""
SAME = 0.5
"""Pairs that score at least this mean the same."""
CANNOT_RERANK = (
    "This model cannot rerank: none of its tasks ranking, similarity, paraphrase has mode `cross`; "
    "train one with it, or search without rerank."
)


def ranking_task(
    model: Model, tasks: Sequence[str] = TO_ORDER, *, mode: PairMode | None = None
) -> str | None:
    """The first of the tasks whose predictions rank pairs, in this mode; None without one."""
    for name in tasks:
        spec = model.tasks.get(name)
        if spec is None or not (spec.range if name == "similarity" else _is_binary(spec)):
            continue
        if mode is None or mode in spec.modes:
            return name
    return None


def pair_scores(spec: TaskSpec, predicted: Floats) -> Floats:
    """Predictions of a ranking task as scores from 0 to 1, float32 [n]."""
    if spec.range is None:
        return predicted if predicted.ndim == 1 else predicted[:, 1]
    low, high = spec.range
    return ((predicted - low) / (high - low)).astype(np.float32)


class Cross:
    """Scores pairs by the cross mode of the first of `tasks` that has one."""

    def __init__(self, model: Model, tasks: Sequence[str]) -> None:
        task = ranking_task(model, tasks, mode="cross")
        if task is None:
            raise TercetError(CANNOT_RERANK)
        self.model = model
        self.task = task

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """How likely or how closely two texts mean the same, from 0 to 1: float32 [n]."""
        predicted = self.model.predictions(self.task, pairs, "cross")
        return pair_scores(self.model.tasks[self.task], predicted)


def rerank_pairs(
    queries: Sequence[str], hits: Sequence[Sequence[Hit]], count: int
) -> list[tuple[str, str]]:
    """Each query with the texts of its first `count` hits."""
    return [
        (query, hit.text)
        for query, ranked in zip(queries, hits, strict=True)
        for hit in ranked[:count]
    ]


def reranked(hits: Sequence[Sequence[Hit]], scores: Iterable[float], count: int) -> list[list[Hit]]:
    """The first `count` hits of each query by the sum of both modes' scores, then the others.

    scores: the scores of `rerank_pairs`
    """
    values = iter(scores)
    ordered = []
    for ranked in hits:
        scored = [replace(hit, cross=round(next(values), 6)) for hit in ranked[:count]]
        scored.sort(key=lambda hit: -(hit.score + (hit.cross or 0.0)))
        ordered.append([*scored, *ranked[count:]])
    return ordered


def _is_binary(spec: TaskSpec) -> bool:
    return spec.labels is not None and len(spec.labels) == 2 and not spec.multi_label
