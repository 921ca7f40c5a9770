"""What all engines have in common: word pieces to vectors and predictions, in the caller's order.

This needs no torch: an ONNX model runs without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from tercet.infer.batches import Rows, token_counts
from tercet.network.onnx_network import OnnxNetwork
from tercet.progress import Progress, silent
from tercet.specs import Floats, Mode, Scaling, Scalings, TaskSpec, side_of
from tercet.text.template import Template
from tercet.text.tokens import Pieces, Tokens
from tercet.text.windows import Windows, windows_of
from tercet.vectors import unit

if TYPE_CHECKING:
    from tercet.network.network import Network

Buffer = bytes | memoryview
Precision = Literal["fp32", "bf16"]
Columns = Sequence[Pieces]
"""The texts (single), or the first and the second texts (bi, cross)."""
# Rows per call of a head on stored vectors.
HEAD_ROWS = 8192


@dataclass(frozen=True, slots=True)
class BaseEngine(ABC):
    """A network with what it needs to read word pieces.

    scalings: by task and mode, how a head's outputs are calibrated
    """

    network: Network | OnnxNetwork
    template: Template
    max_tokens: int
    scalings: Scalings = field(default_factory=dict)

    @property
    def tasks(self) -> Mapping[str, TaskSpec]:
        """The tasks of the network, by name."""
        return self.network.tasks

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a vector."""

    @property
    @abstractmethod
    def batch_tokens(self) -> int:
        """The most tokens that are encoded together."""

    @property
    def part_rows(self) -> int | None:
        """Rows whose word pieces are made while those before them are encoded; None: all first."""
        return None

    @abstractmethod
    def encoder_bytes(self) -> Iterator[Buffer]:
        """Everything that vectors depend on except tokens and pooling, part by part."""

    @abstractmethod
    def machine(self) -> dict[str, str | int | None]:
        """What runs the network: `device`, `gpu` and `threads`."""

    @abstractmethod
    def _head(self, task: str, mode: Mode, vectors: Sequence[Floats]) -> Floats:
        """The head's outputs [n, outputs] for the vectors that it reads, each [n, width]."""

    @abstractmethod
    def _vectors(
        self, columns: Columns, rows: Rows, progress: Progress, *, side: str | None
    ) -> Floats:
        """The vectors of the texts, or joined pairs, at `rows`: float32 [n, width]."""

    @abstractmethod
    def _outputs(self, task: str, mode: Mode, columns: Columns, progress: Progress) -> Floats:
        """Outputs of the head of a task, modes single and cross: float32 [n, outputs]."""

    def open_heads(self) -> None:
        """Read all that heads need from files, which may be replaced later; most engines have it in
        memory already."""
        return

    def reads_vectors(self, task: str, mode: Mode) -> bool:
        """Whether a head reads only vectors that may have been stored, one per text or pair."""
        return self.tasks[task].modes[mode].reads_vectors

    def side_of(self, task: str) -> str | None:
        """The task whose side weights encode a task's texts; None: the plain encoder does.

        Stored vectors fit a head only if they were encoded with the same.
        """
        return side_of(self.tasks, task)

    def output_width(self, task: str, mode: Mode) -> int:
        """Numbers per row that the head of a task gives."""
        return self.tasks[task].outputs(mode)

    def apply_head(self, task: str, mode: Mode, vectors: Floats, columns: Sequence[Rows]) -> Floats:
        """The outputs of a head for stored vectors, float32 [n, outputs].

        vectors: of texts, or of pairs encoded jointly (cross), as pooled: float32 [m, width]
        columns: rows of `vectors`, int64 [n] each: two for mode `bi`, else one
        """
        count = len(columns[0])
        results = np.empty((count, self.output_width(task, mode)), np.float32)
        for start in range(0, count, HEAD_ROWS):
            block = slice(start, start + HEAD_ROWS)
            results[block] = self._head(task, mode, [vectors[rows[block]] for rows in columns])
        return results

    def predict(self, task: str, mode: Mode, outputs: Floats) -> Floats:
        """outputs [n, outputs] -> probabilities [n, classes] or of class 1 [n], or grades [n]"""
        scaling = self.scalings.get(task, {}).get(mode, Scaling())
        return self.tasks[task].predict(mode, scaling.apply(outputs))

    def vectors(
        self,
        pieces: Pieces,
        rows: Rows | None = None,
        *,
        side: str | None = None,
        progress: Progress = silent,
    ) -> Floats:
        """The vector of every text, or of the texts at `rows`, as pooled: float32 [n, width].

        That of a text that is read in windows is their average.

        side: from `side_of`
        """
        windows = self.windows([pieces], rows)
        if windows is not None:
            every = np.arange(len(windows))
            return windows.average(self._vectors(windows.columns, every, progress, side=side))
        chosen = np.arange(len(pieces)) if rows is None else rows
        return self._vectors([pieces], chosen, progress, side=side)

    def unit_vectors(
        self,
        pieces: Pieces,
        rows: Rows | None = None,
        *,
        width: int | None = None,
        progress: Progress = silent,
    ) -> Floats:
        """The first `width` numbers of the same vectors, at length 1: float32 [n, width]."""
        return unit(self.vectors(pieces, rows, progress=progress)[:, :width])

    def joint_vectors(
        self,
        first: Pieces,
        second: Pieces,
        *,
        side: str | None = None,
        progress: Progress = silent,
    ) -> Floats:
        """The vector of every pair, encoded jointly, as pooled: float32 [n, width].

        That of a pair that is read in windows is their average.
        """
        windows = self.windows([first, second])
        if windows is not None:
            every = np.arange(len(windows))
            return windows.average(self._vectors(windows.columns, every, progress, side=side))
        return self._vectors([first, second], np.arange(len(first)), progress, side=side)

    def outputs(
        self, task: str, mode: Mode, columns: Columns, *, progress: Progress = silent
    ) -> Floats:
        """The head's outputs for every row, float32 [n, outputs].

        Those of a text or joined pair that is read in windows are averaged; in mode `bi`, the
        vectors of its texts are.
        """
        if mode != "bi":
            windows = self.windows(columns)
            if windows is not None:
                return windows.average(self._outputs(task, mode, windows.columns, progress))
            return self._outputs(task, mode, columns, progress)
        texts = Pieces.concat(columns)
        # A text that occurs in several pairs is encoded once.
        unique_rows, places = texts.distinct()
        vectors = self.vectors(texts, unique_rows, side=self.side_of(task), progress=progress)
        return self.apply_head(task, "bi", vectors, np.split(places, 2))

    def predictions(
        self, task: str, mode: Mode, columns: Columns, *, progress: Progress = silent
    ) -> Floats:
        """Probabilities [n, classes] or [n], or grades [n], of every row of a task."""
        return self.predict(task, mode, self.outputs(task, mode, columns, progress=progress))

    def windows(self, columns: Columns, rows: Rows | None = None) -> Windows | None:
        """The windows of texts, of joined pairs, or of those at `rows`; None if they need none."""
        return windows_of(columns, rows, template=self.template, max_tokens=self.max_tokens)

    def _lengths(self, columns: Columns) -> Rows:
        return token_counts(columns, template=self.template, max_tokens=self.max_tokens)

    def _tokens(self, columns: Columns, rows: Rows) -> Tokens:
        if len(columns) == 1:
            return self.template.single(columns[0], rows, max_tokens=self.max_tokens)
        first, second = columns
        return self.template.pair(first, second, rows, max_tokens=self.max_tokens)
