"""Rows as their heads read them: the vectors that the encoder gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tercet.infer.base import BaseEngine, Columns
from tercet.infer.batches import Rows
from tercet.specs import Floats, Mode
from tercet.text.windows import Windows


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The vectors of n rows.

    columns: of each side, or of joined pairs, as pooled: float32 [m, width]
    windows: the windows that the vectors are of; None: they are of whole texts or pairs, m = n
    """

    columns: tuple[Floats, ...]
    windows: Windows | None = None

    @classmethod
    def of(cls, engine: BaseEngine, task: str, mode: Mode, columns: Columns) -> EncodedRows:
        """What the head of a task reads of these columns."""
        side, used = engine.side_of(task), columns[: 1 if mode == "single" else 2]
        # In mode `bi`, the vectors of windows are averaged, not what the head makes of them.
        windows = engine.windows(used) if mode != "bi" else None
        used = used if windows is None else windows.columns
        if mode == "cross":
            return cls((engine.joint_vectors(used[0], used[1], side=side),), windows)
        return cls(tuple(engine.vectors(column, side=side) for column in used), windows)

    def take(self, rows: Rows) -> EncodedRows:
        """Those of these rows [k], in their order."""
        if self.windows is None:
            return EncodedRows(tuple(vectors[rows] for vectors in self.columns))
        places = self.windows.places(rows)
        chosen = tuple(vectors[places] for vectors in self.columns)
        return EncodedRows(chosen, self.windows.take(rows))

    def averaged(self, values: Floats) -> Floats:
        """What a head makes of the vectors [m, k] -> that of the rows [n, k]"""
        return values if self.windows is None else self.windows.average(values)

    def outputs(self, engine: BaseEngine, task: str, mode: Mode) -> Floats:
        """The outputs of the head of a task, float32 [n, outputs]."""
        count = len(self.columns[0])
        rows = [np.arange(count) + count * place for place in range(len(self.columns))]
        return self.averaged(engine.apply_head(task, mode, np.concatenate(self.columns), rows))


Encoded = Mapping[tuple[str, Mode], EncodedRows]
"""By task and mode."""
