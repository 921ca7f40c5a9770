"""The vectors of one evaluation: a text, or a pair read jointly, is encoded once for all suites."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tercet.infer.batches import Rows
from tercet.infer.engine import Floats, Progress
from tercet.model import Model
from tercet.specs import Mode
from tercet.text.tokens import Pieces

Tell = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


class _Vectors:
    """A growing array of vectors, each under its key."""

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


class Corpus:
    """What a model makes of the texts that it has been shown.

    Texts count as the same where their word pieces are the same.
    """

    def __init__(self, model: Model, tell: Tell | None = None) -> None:
        self.model = model
        self.tell = tell
        self._keys: dict[str, bytes] = {}
        self._texts = _Vectors(model.width)
        self._pairs = _Vectors(model.width)
        self._outputs: dict[tuple[str, Mode], _Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Floats:
        """Vectors of length 1, float32 [n, width]."""
        rows = self._text_rows(texts)
        vectors = self._texts.array[rows]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: Floats = vectors / np.maximum(lengths, np.float32(1e-12))
        return scaled

    def cosines(self, first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
        """How near the texts of each pair are, float64 [n]."""
        both = self.embed([*first, *second]).astype(np.float64)
        cosines: NDArray[np.float64] = np.einsum("nw,nw->n", both[: len(first)], both[len(first) :])
        return cosines

    def outputs(self, task: str, mode: Mode, columns: Sequence[Sequence[str]]) -> Floats:
        """What the head of a task gives for every row, float32 [n, outputs].

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
        """Outputs of a head that reads more than vectors; they are kept for it alone."""
        used = columns[: 1 if mode == "single" else 2]
        keys = list(zip(*map(self._piece_keys, used), strict=True))
        width = self.model.engine.output_width(task, mode)
        known = self._outputs.setdefault((task, mode), _Vectors(width))
        if new := known.new(keys):
            sides = [self.model.pieces([side[place] for place in new]) for side in used]
            told = self._progress("sentences" if mode == "single" else "pairs")
            outputs = self.model.engine.outputs(task, mode, sides, progress=told)
            known.add([keys[place] for place in new], outputs)
        rows = known.rows(keys)
        return known.array[rows]

    def _text_rows(self, texts: Sequence[str]) -> Rows:
        """Where the vectors of the texts stand; new texts are encoded first."""
        keys = self._piece_keys(texts)
        if new := self._texts.new(keys):
            pieces = self.model.pieces([texts[place] for place in new])
            vectors = self.model.engine.vectors(pieces, progress=self._progress("sentences"))
            self._texts.add([keys[place] for place in new], vectors)
        return self._texts.rows(keys)

    def _pair_rows(self, first: Sequence[str], second: Sequence[str]) -> Rows:
        """Where the joint vectors of the pairs stand; new pairs are encoded first."""
        keys = list(zip(self._piece_keys(first), self._piece_keys(second), strict=True))
        if new := self._pairs.new(keys):
            sides = [self.model.pieces([side[place] for place in new]) for side in (first, second)]
            told = self._progress("pairs")
            vectors = self.model.engine.joint_vectors(sides[0], sides[1], progress=told)
            self._pairs.add([keys[place] for place in new], vectors)
        return self._pairs.rows(keys)

    def _piece_keys(self, texts: Sequence[str]) -> list[bytes]:
        unseen = [text for text in dict.fromkeys(texts) if text not in self._keys]
        if unseen:
            pieces = self.model.pieces(unseen)
            self._keys.update(zip(unseen, _contents(pieces), strict=True))
        return [self._keys[text] for text in texts]

    def _progress(self, what: str) -> Progress | None:
        tell = self.tell
        if tell is None:
            return None
        return lambda done, total: tell(what, done, total)


def _contents(pieces: Pieces) -> Iterator[bytes]:
    for start, end in pairwise(pieces.offsets.tolist()):
        yield pieces.ids[start:end].tobytes()
