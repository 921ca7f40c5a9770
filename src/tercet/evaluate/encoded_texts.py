"""The vectors of one evaluation: each text, and each pair read jointly, is encoded once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from tercet.infer.batches import Rows
from tercet.model import Model
from tercet.progress import Phases, silent_phases
from tercet.specs import Floats, Mode
from tercet.vectors import unit


class _Vectors:
    """A growing array of vectors by key."""

    def __init__(self, width: int) -> None:
        self.known: dict[Hashable, int] = {}
        self._array = np.empty((0, width), np.float32)

    @property
    def array(self) -> Floats:
        """float32 [m, width]"""
        return self._array[: len(self.known)]

    def new(self, keys: Sequence[Hashable]) -> list[int]:
        """The places of keys that are not known yet, the first of each."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        return sorted(place for key, place in first.items() if key not in self.known)

    def add(self, keys: Sequence[Hashable], vectors: Floats) -> None:
        start, end = len(self.known), len(self.known) + len(keys)
        if end > len(self._array):
            grown = np.empty((max(end, 2 * len(self._array)), self._array.shape[1]), np.float32)
            grown[:start] = self._array[:start]
            self._array = grown
        self._array[start:end] = vectors
        self.known.update(zip(keys, range(start, end), strict=True))

    def rows(self, keys: Sequence[Hashable]) -> Rows:
        return np.fromiter((self.known[key] for key in keys), np.int64, len(keys))


class EncodedTexts:
    """Vectors and outputs of a model for the texts that it has read so far.

    Texts are equal where their word pieces are equal.
    """

    def __init__(self, model: Model, phases: Phases = silent_phases) -> None:
        """phases: starts the progress of one phase of the encoding"""
        self.model = model
        self.phases = phases
        self._keys: dict[str, bytes] = {}
        self._texts = _Vectors(model.width)
        self._pairs = _Vectors(model.width)
        self._outputs: dict[tuple[str, Mode], _Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Floats:
        """Vectors of length 1, float32 [n, width]."""
        rows = self._text_rows(texts)
        return unit(self._texts.array[rows])

    def cosines(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """The cosine of the two texts of each pair, float64 [n]."""
        both = self.embed([*first, *second]).astype(np.float64)
        cosines: NDArray[np.float64] = np.einsum("nw,nw->n", both[: len(first)], both[len(first) :])
        return cosines

    def outputs(self, task: str, mode: Mode, columns: Sequence[Sequence[str]]) -> Floats:
        """The outputs of a task's head for every row, float32 [n, outputs].

        columns: the texts (single), or the first and the second texts (bi, cross)
        """
        engine = self.model.engine
        if not engine.reads_vectors(task, mode):
            return self._own_outputs(task, mode, columns)
        if mode == "cross":
            rows = [self._pair_rows(columns[0], columns[1])]
            return engine.apply_head(task, mode, self._pairs.array, rows)
        used = columns[: 2 if mode == "bi" else 1]
        together = self._text_rows([text for column in used for text in column])
        return engine.apply_head(task, mode, self._texts.array, np.split(together, len(used)))

    def predictions(self, task: str, mode: Mode, columns: Sequence[Sequence[str]]) -> Floats:
        """Probabilities [n, classes] or [n], or grades [n], of every row of a task."""
        return self.model.engine.predict(task, mode, self.outputs(task, mode, columns))

    def _own_outputs(self, task: str, mode: Mode, columns: Sequence[Sequence[str]]) -> Floats:
        """Outputs of a head that reads more than vectors; nothing else can use them."""
        used = columns[: 1 if mode == "single" else 2]
        keys = list(zip(*map(self._piece_keys, used), strict=True))
        width = self.model.engine.output_width(task, mode)
        known = self._outputs.setdefault((task, mode), _Vectors(width))
        if new := known.new(keys):
            sides = [self.model.pieces([side[place] for place in new]) for side in used]
            with self.phases("sentences" if mode == "single" else "pairs") as progress:
                outputs = self.model.engine.outputs(task, mode, sides, progress=progress)
            known.add([keys[place] for place in new], outputs)
        rows = known.rows(keys)
        return known.array[rows]

    def _text_rows(self, texts: Sequence[str]) -> Rows:
        """The rows of the texts' vectors; new texts are encoded first."""
        keys = self._piece_keys(texts)
        if new := self._texts.new(keys):
            pieces = self.model.pieces([texts[place] for place in new])
            with self.phases("sentences") as progress:
                vectors = self.model.engine.vectors(pieces, progress=progress)
            self._texts.add([keys[place] for place in new], vectors)
        return self._texts.rows(keys)

    def _pair_rows(self, first: Sequence[str], second: Sequence[str]) -> Rows:
        """The rows of the pairs' joint vectors; new pairs are encoded first."""
        keys = list(zip(self._piece_keys(first), self._piece_keys(second), strict=True))
        if new := self._pairs.new(keys):
            sides = [self.model.pieces([side[place] for place in new]) for side in (first, second)]
            with self.phases("pairs") as progress:
                vectors = self.model.engine.joint_vectors(sides[0], sides[1], progress=progress)
            self._pairs.add([keys[place] for place in new], vectors)
        return self._pairs.rows(keys)

    def _piece_keys(self, texts: Sequence[str]) -> list[bytes]:
        unseen = [text for text in dict.fromkeys(texts) if text not in self._keys]
        if unseen:
            pieces = self.model.pieces(unseen)
            self._keys.update(zip(unseen, pieces.keys(), strict=True))
        return [self._keys[text] for text in texts]
