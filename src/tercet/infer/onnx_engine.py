"""The ONNX path: word pieces to vectors and to predictions, in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tercet.cores import threads
from tercet.infer.base import BaseEngine, Buffer, Floats, Progress
from tercet.infer.batches import Rows, even_batches, special
from tercet.infer.predictions import output_width, predict
from tercet.infer.workers import side_by_side
from tercet.network.onnx_network import OnnxNetwork
from tercet.specs import DensePairHeadSpec, Mode, Scaling, Scalings
from tercet.text.template import Template, longest_first
from tercet.text.tokens import Pieces, Tokens

# Tokens a batch: larger ones fall out of a core's cache, smaller ones leave its units idle.
MOST, LEAST = 384, 128
COMPARED = 8192
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class OnnxEngine(BaseEngine):
    """A network in ONNX Runtime with what it needs to read word pieces.

    scalings: of each task, of each mode: what its head's outputs go through first
    """

    network: OnnxNetwork
    template: Template
    max_tokens: int
    scalings: Scalings = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.network.width

    @property
    def batch_tokens(self) -> int:
        return MOST * threads()

    def encoder_bytes(self) -> Iterator[Buffer]:
        with self.network.file.open("rb") as file:
            while part := file.read(CHUNK):
                yield part

    def machine(self) -> dict[str, str | int | None]:
        return {"device": "cpu", "gpu": None, "threads": threads()}

    def reads_vectors(self, task: str, mode: Mode) -> bool:
        return not isinstance(self.network.spec(task, mode).head, DensePairHeadSpec)

    def output_width(self, task: str, mode: Mode) -> int:
        return output_width(self.network.tasks[task], self.network.spec(task, mode))

    def read(self, task: str, mode: Mode, known: Floats, columns: Sequence[Rows]) -> Floats:
        count = len(columns[0])
        results = np.empty((count, self.output_width(task, mode)), np.float32)
        for start in range(0, count, COMPARED):
            block = slice(start, start + COMPARED)
            given = [known[rows[block]] for rows in columns]
            results[block] = self.network.head(task, mode, *given)
        return results

    def predict(self, task: str, mode: Mode, outputs: Floats) -> Floats:
        scaling = self.scalings.get(task, {}).get(mode, Scaling())
        spec = self.network.spec(task, mode)
        scaled = outputs / np.float32(scaling.temperature) + np.float32(scaling.shift)
        return predict(self.network.tasks[task], spec, scaled)

    def _vectors(self, columns: Sequence[Pieces], rows: Rows, progress: Progress | None) -> Floats:
        lengths = self._lengths(columns)[rows]
        results = np.empty((len(rows), self.width), np.float32)

        def encode(batch: Rows) -> int:
            tokens = self._tokens(columns, rows[batch])
            results[batch] = self.network.vectors(*rectangle(tokens))
            return len(batch)

        budget = int(np.clip(lengths.sum() // threads(), LEAST, MOST))
        done = 0
        for count in self._each(encode, even_batches(lengths, budget=budget)):
            done += count
            if progress is not None:
                progress(done, len(rows))
        return results

    def _outputs(
        self, task: str, mode: Mode, columns: Sequence[Pieces], progress: Progress | None
    ) -> Floats:
        every = np.arange(len(columns[0]))
        if self.reads_vectors(task, mode):
            return self.read(task, mode, self._vectors(columns, every, progress), [every])
        ahead, back = _halves(progress)
        orders = [
            self._vectors(columns, every, ahead),
            self._vectors(self._swapped(*columns), every, back),
        ]
        known = np.concatenate(orders)
        return self.read(task, mode, known, [every, every + len(every)])

    def _swapped(self, first: Pieces, second: Pieces) -> list[Pieces]:
        """The pairs the other way round, each side cut to what is left of it the right way."""
        room = self.max_tokens - special(self.template.two)
        kept = longest_first(first.lengths, second.lengths, room=room)
        return [
            replace(side, lengths=np.minimum(left, np.diff(side.offsets)))
            for side, left in zip((second, first), reversed(kept), strict=True)
        ]

    def _each(self, encode: Callable[[Rows], int], found: Sequence[Rows]) -> Iterator[int]:
        """Encode every batch; one by itself needs no other thread."""
        if len(found) <= 1 or threads() == 1:
            yield from map(encode, found)
            return
        yield from side_by_side(encode, found, threads=threads())


def rectangle(tokens: Tokens) -> tuple[Rows, Rows, Rows]:
    """Ids and types [n, longest], padded where rows are shorter, and lengths [n]: all int64."""
    lengths = tokens.lengths
    shape = len(tokens), tokens.longest
    if lengths.sum() == shape[0] * shape[1]:
        ids, types = (part.astype(np.int64).reshape(shape) for part in (tokens.ids, tokens.types))
        return ids, types, lengths
    real = np.arange(tokens.longest) < lengths[:, None]
    ids, types = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    ids[real], types[real] = tokens.ids, tokens.types
    return ids, types, lengths


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """One progress for two passes over the same rows."""
    if progress is None:
        return None, None
    return (
        lambda done, total: progress(done // 2, total),
        lambda done, total: progress((total + done) // 2, total),
    )
