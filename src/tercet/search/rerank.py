"""The second mode: what the bi mode found, judged by the cross mode, which reads both texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.model import SIMILARITY_SCALE, Model

TO_ORDER = ("similarity", "paraphrase")
"""Whose head puts hits into order: that of the first of these tasks that a model has."""
TO_DECIDE = ("paraphrase", "similarity")
"""Whose head says which pairs mean the same."""
SAME = 0.5
"""Pairs that score at least this say the same."""


class Cross:
    """The cross mode of the first of `tasks` that has one.

    A grade orders better than a probability, which says of all good candidates that they are; a
    probability decides better.
    """

    def __init__(self, model: Model, tasks: Sequence[str]) -> None:
        self.model = model
        for name in tasks:
            if name in model.tasks and "cross" in model.tasks[name].modes:
                self.task = name
                return
        raise TercetError(
            "This model cannot rerank: neither its task `paraphrase` nor `similarity` has a mode "
            "`cross`; train one with it, or leave rerank away."
        )

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """How likely or how much two texts say the same, from 0 to 1: float32 [n]."""
        if self.task == "paraphrase":
            return self.model.paraphrase(pairs, "cross")
        return self.model.similarity(pairs, "cross") / np.float32(SIMILARITY_SCALE)
