"""The ONNX path: word pieces to vectors and to predictions, in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.cores import threads
from tercet.infer.base import BaseEngine, Buffer, Columns
from tercet.infer.batches import Rows, even_batches
from tercet.infer.workers import in_parallel
from tercet.network.onnx_network import OnnxNetwork
from tercet.progress import Progress
from tercet.specs import Floats, Mode
from tercet.text.template import longest_first, special_count
from tercet.text.tokens import Pieces, Tokens

# Tokens per batch: larger ones exceed a core's cache, smaller ones leave its units idle.
MOST, LEAST = 384, 128
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class OnnxEngine(BaseEngine):
    """A network in ONNX Runtime with what it needs to read word pieces."""

    network: OnnxNetwork

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

    def open_heads(self) -> None:
        self.network.open_heads()

    def _head(self, task: str, mode: Mode, vectors: Sequence[Floats]) -> Floats:
        return self.network.head(task, mode, *vectors)

    def _vectors(
        self, columns: Columns, rows: Rows, progress: Progress, *, side: str | None = None
    ) -> Floats:
        assert side is None  # since tasks with side weights are not exported
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
            progress(done, len(rows))
        return results

    def _outputs(self, task: str, mode: Mode, columns: Columns, progress: Progress) -> Floats:
        every = np.arange(len(columns[0]))
        if self.reads_vectors(task, mode):
            vectors = self._vectors(columns, every, progress)
            return self.apply_head(task, mode, vectors, [every])
        orders = [
            self._vectors(columns, every, _half(progress, first=True)),
            self._vectors(self._swapped(*columns), every, _half(progress, first=False)),
        ]
        vectors = np.concatenate(orders)
        return self.apply_head(task, mode, vectors, [every, every + len(every)])

    def _swapped(self, first: Pieces, second: Pieces) -> list[Pieces]:
        """The pairs in the other order, each side truncated as in the original order."""
        room = self.max_tokens - special_count(self.template.pair_slots)
        kept_lengths = longest_first(first.lengths, second.lengths, room=room)
        return [
            replace(side, lengths=np.minimum(kept, side.held))
            for side, kept in zip((second, first), reversed(kept_lengths), strict=True)
        ]

    def _each(self, encode: Callable[[Rows], int], row_batches: Sequence[Rows]) -> Iterator[int]:
        """Encode every batch; a single one needs no other thread."""
        if len(row_batches) <= 1 or threads() == 1:
            return map(encode, row_batches)
        return in_parallel(encode, row_batches, threads=threads())


def rectangle(tokens: Tokens) -> tuple[Rows, Rows, Rows]:
    """Ids and types, padded where rows are shorter, and 1 where they are not: int64 [n, longest]"""
    shape = len(tokens), tokens.longest
    if tokens.lengths.sum() == shape[0] * shape[1]:
        ids, types = (part.astype(np.int64).reshape(shape) for part in (tokens.ids, tokens.types))
        return ids, types, np.ones(shape, np.int64)
    real = np.arange(tokens.longest) < tokens.lengths[:, None]
    ids, types = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    ids[real], types[real] = tokens.ids, tokens.types
    return ids, types, real.astype(np.int64)


def _half(progress: Progress, *, first: bool) -> Progress:
    """The progress of the first or the second of two passes over the same rows."""

    def report(done: int, total: int | None = None, *, note: str = "") -> None:
        before = 0 if first else total or done
        progress((before + done) // 2, total, note=note)

    return report
