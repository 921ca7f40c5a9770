"""The vectors of one evaluation: each text, and each pair read jointly, is encoded once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tercet.infer.batches import Rows
from tercet.model import Kind, Model
from tercet.progress import Phases, Progress, silent_phases
from tercet.specs import Floats, Mode
from tercet.text.tokens import Pieces
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
        # By the task whose side weights encoded them; None: the plain encoder.
        self._texts: dict[str | None, _Vectors] = defaultdict(lambda: _Vectors(model.width))
        self._pairs: dict[str | None, _Vectors] = defaultdict(lambda: _Vectors(model.width))
        self._outputs: dict[tuple[str, Mode], _Vectors] = {}

    def embed(self, texts: Sequence[str], *, width: int | None = None) -> Floats:
        """Vectors of length 1, float32 [n, width]; width: as in `Model.embed`"""
        known = self._texts[None]
        rows = self._rows(known, [texts], self.model.engine.vectors)
        return unit(known.array[rows, :width])

    def cosines(
        self, first: Sequence[str], second: Sequence[str], *, width: int | None = None
    ) -> NDArray[np.float64]:
        """The cosine of the two texts of each pair, float64 [n]; width: as in `Model.embed`"""
        both = self.embed([*first, *second], width=width).astype(np.float64)
        cosines: NDArray[np.float64] = np.einsum("nw,nw->n", both[: len(first)], both[len(first) :])
        return cosines

    def outputs(self, task: str, mode: Mode, columns: Sequence[Sequence[str]]) -> Floats:
        """The outputs of a task's head for every row, float32 [n, outputs].

        columns: the texts (single), or the first and the second texts (bi, cross)
        """
        engine, used = self.model.engine, columns[: 1 if mode == "single" else 2]
        by_window = mode != "bi" and self.model.info.long == "windows"
        if by_window or not engine.reads_vectors(task, mode):
            # Nothing else can use the outputs of a head that reads more than vectors, or windows.
            own = self._outputs.setdefault((task, mode), _Vectors(engine.output_width(task, mode)))

            def encode(*sides: Pieces, progress: Progress) -> Floats:
                return engine.outputs(task, mode, sides, progress=progress)

            rows = self._rows(own, used, encode)
            return own.array[rows]
        side = engine.side_of(task)
        if mode == "cross":
            known = self._pairs[side]
            rows = self._rows(known, used, partial(engine.joint_vectors, side=side))
            return engine.apply_head(task, mode, known.array, [rows])
        texts = [text for column in used for text in column]
        known = self._texts[side]
        rows = self._rows(known, [texts], partial(engine.vectors, side=side))
        return engine.apply_head(task, mode, known.array, np.split(rows, len(used)))

    def predictions(self, task: str, mode: Mode, columns: Sequence[Sequence[str]]) -> Floats:
        """Probabilities [n, classes] or [n], or grades [n], of every row of a task."""
        return self.model.engine.predict(task, mode, self.outputs(task, mode, columns))

    def _rows(
        self, known: _Vectors, columns: Sequence[Sequence[str]], encode: Callable[..., Floats]
    ) -> Rows:
        """The rows of the columns' inputs in `known`; new inputs are encoded first."""
        keys = list(zip(*map(self._piece_keys, columns), strict=True))
        if new := known.new(keys):
            sides = [self.model.pieces([column[place] for place in new]) for column in columns]
            kind: Kind = "texts" if len(columns) == 1 else "pairs"
            self.model.count_inputs(kind, sides, joint=kind == "pairs")
            with self.phases("sentences" if len(columns) == 1 else "pairs") as progress:
                vectors = encode(*sides, progress=progress)
            known.add([keys[place] for place in new], vectors)
        return known.rows(keys)

    def _piece_keys(self, texts: Sequence[str]) -> list[bytes]:
        unseen = [text for text in dict.fromkeys(texts) if text not in self._keys]
        if unseen:
            pieces = self.model.pieces(unseen)
            self._keys.update(zip(unseen, pieces.keys(), strict=True))
        return [self._keys[text] for text in texts]
