"""What all engines have in common: word pieces to vectors and predictions, in the caller's order.

Torch is not needed here: an ONNX model runs without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tercet.infer.batches import Rows, pair_lengths, single_lengths
from tercet.specs import Mode
from tercet.text.template import Template
from tercet.text.tokens import Pieces, Tokens

Buffer = bytes | memoryview
Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Told how many rows are done, and how many there are."""


class BaseEngine(ABC):
    """A network with what it needs to read word pieces."""

    template: Template
    max_tokens: int

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers in a vector."""

    @property
    @abstractmethod
    def batch_tokens(self) -> int:
        """Tokens that are encoded together at most."""

    @abstractmethod
    def encoder_bytes(self) -> Iterator[Buffer]:
        """All that the encoder's vectors depend on beside tokens and pooling, part by part."""

    @abstractmethod
    def machine(self) -> dict[str, str | int | None]:
        """What runs the network: `device`, `gpu` and `threads`."""

    @abstractmethod
    def reads_vectors(self, task: str, mode: Mode) -> bool:
        """Whether a head reads nothing but vectors that may have been stored, one a text or pair;
        others need the tokens."""

    @abstractmethod
    def output_width(self, task: str, mode: Mode) -> int:
        """Numbers a row that the head of a task gives."""

    @abstractmethod
    def read(self, task: str, mode: Mode, known: Floats, columns: Sequence[Rows]) -> Floats:
        """What a head gives for stored vectors, float32 [n, outputs].

        known: vectors of texts, or of pairs encoded jointly (cross), as pooled: float32 [m, width]
        columns: rows of `known`, int64 [n] each: two for mode `bi`, else one
        """

    @abstractmethod
    def predict(self, task: str, mode: Mode, outputs: Floats) -> Floats:
        """A head's outputs [n, outputs] to probabilities [n, classes] or [n], or to grades [n]."""

    @abstractmethod
    def _vectors(self, columns: Sequence[Pieces], rows: Rows, progress: Progress | None) -> Floats:
        """The vectors of the texts, or joined pairs, at `rows`: float32 [n, width]."""

    @abstractmethod
    def _outputs(
        self, task: str, mode: Mode, columns: Sequence[Pieces], progress: Progress | None
    ) -> Floats:
        """What the head of a task gives, modes single and cross: float32 [n, outputs]."""

    def vectors(
        self, pieces: Pieces, rows: Rows | None = None, *, progress: Progress | None = None
    ) -> Floats:
        """The vector of every text, or of the texts at `rows`, as pooled: float32 [n, width]."""
        chosen = np.arange(len(pieces)) if rows is None else rows
        return self._vectors([pieces], chosen, progress)

    def joint_vectors(
        self, first: Pieces, second: Pieces, *, progress: Progress | None = None
    ) -> Floats:
        """The vector of every pair, encoded jointly, as pooled: float32 [n, width]."""
        return self._vectors([first, second], np.arange(len(first)), progress)

    def outputs(
        self,
        task: str,
        mode: Mode,
        columns: Sequence[Pieces],
        *,
        progress: Progress | None = None,
    ) -> Floats:
        """What the head of a task gives for every row, float32 [n, outputs].

        columns: the texts (single), or the first and the second texts (bi, cross)
        """
        if mode != "bi":
            return self._outputs(task, mode, columns, progress)
        first, second = columns
        texts = join(first, second)
        # A text that stands in several pairs is encoded once.
        kept, places = distinct(texts)
        known = self.vectors(texts, kept, progress=progress)
        return self.read(task, "bi", known, [places[: len(first)], places[len(first) :]])

    def predictions(
        self,
        task: str,
        mode: Mode,
        columns: Sequence[Pieces],
        *,
        progress: Progress | None = None,
    ) -> Floats:
        """Probabilities [n, classes] or [n], or grades [n], of every row of a task."""
        return self.predict(task, mode, self.outputs(task, mode, columns, progress=progress))

    def _lengths(self, columns: Sequence[Pieces]) -> Rows:
        if len(columns) == 1:
            return single_lengths(columns[0], template=self.template, max_tokens=self.max_tokens)
        first, second = columns
        return pair_lengths(first, second, template=self.template, max_tokens=self.max_tokens)

    def _tokens(self, columns: Sequence[Pieces], rows: Rows) -> Tokens:
        if len(columns) == 1:
            return self.template.single(columns[0], rows, max_tokens=self.max_tokens)
        first, second = columns
        return self.template.pair(first, second, rows, max_tokens=self.max_tokens)


def join(first: Pieces, second: Pieces) -> Pieces:
    """The texts of both, one after the other."""
    return Pieces(
        ids=np.concatenate([first.ids, second.ids]),
        offsets=np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]]),
        lengths=np.concatenate([first.lengths, second.lengths]),
    )


def distinct(texts: Pieces) -> tuple[Rows, Rows]:
    """One row of every distinct text [m], and for each text its place among them [n]."""
    places = np.empty(len(texts), np.int64)
    seen: dict[bytes, int] = {}
    kept: list[int] = []
    bounds = texts.offsets.tolist()
    for row in range(len(texts)):
        key = texts.ids[bounds[row] : bounds[row + 1]].tobytes()
        place = seen.setdefault(key, len(kept))
        if place == len(kept):
            kept.append(row)
        places[row] = place
    return np.array(kept, np.int64), places
