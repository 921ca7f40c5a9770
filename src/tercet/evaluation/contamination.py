"""Rows of an evaluation set that a model was trained on, by the sketch in its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.evaluation.metrics import Estimate
from tercet.model import Model

Columns = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Contamination:
    """What the rows of a set have in common with the training rows.

    seen: rows that were trained on, folded; pairs in either order
    implied: further pairs whose two texts known duplicates connect
    fresh: bool [n], the other rows
    """

    seen: int
    implied: int
    fresh: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Model, columns: Columns) -> Contamination | None:
        """None for a model without a sketch; columns: of n texts each"""
        sketch = model.sketch
        if sketch is None:
            return None
        seen = sketch.seen(columns)
        implied = np.zeros_like(seen)
        if len(columns) == 2:
            implied = sketch.implied(columns[0], columns[1]) & ~seen
        return cls(int(seen.sum()), int(implied.sum()), ~(seen | implied))

    @property
    def rows(self) -> int:
        """How many rows are left."""
        return int(self.fresh.sum())

    def measure(
        self, whole: dict[str, Estimate], again: Callable[[], dict[str, Estimate]]
    ) -> dict[str, Estimate]:
        """The metrics of the fresh rows: those of all rows, or what `again` gives where rows are
        left out; undefined where none are left."""
        if self.fresh.all():
            return whole
        return again() if self.rows else dict.fromkeys(whole, Estimate(None))

    def describe(self) -> str:
        total = f"{len(self.fresh):,} rows"
        if self.fresh.all():
            return f"none of {total} was trained on."
        implied = f", and {self.implied:,} more are implied by duplicates" if self.implied else ""
        return f"{self.seen:,} of {total} were trained on{implied}."

    def to_json(self) -> dict[str, Any]:
        return {"rows": self.seen, "implied": self.implied}
