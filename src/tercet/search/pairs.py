"""The exact closest pairs of vectors: products block by block, in constant memory.

Pairs are (first, second) with first < second. Candidates from float32 products are computed again
in float64, so that the result depends neither on the block size nor on the number of threads;
among equal scores the earlier pair comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.files import parse_json, replace_file, write_json
from tercet.progress import Progress, silent
from tercet.specs import Floats

Records = NDArray[np.void]

BLOCK = 2048
RECORD = np.dtype([("first", "<i8"), ("second", "<i8"), ("score", "<f4")])
# The largest error of a product in float32.
SLACK = 1e-5
CHECKED = 4096
PENDING = 1 << 20
STATE, FOUND = "state.json", "pairs.bin"


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """Vectors [n, width] of consecutive rows, the first of which is `start`."""

    start: int
    vectors: Floats


def blocks_of(parts: Sequence[Floats]) -> list[VectorBlock]:
    """Consecutive parts [n, width], cut into blocks."""
    blocks: list[VectorBlock] = []
    start = 0
    for part in parts:
        begins = range(0, len(part), BLOCK)
        blocks += [VectorBlock(start + begin, part[begin : begin + BLOCK]) for begin in begins]
        start += len(part)
    return blocks


def closest_pairs(
    blocks: Sequence[VectorBlock],
    folder: Path,
    *,
    top: int,
    threshold: float | None = None,
    progress: Progress = silent,
) -> Records:
    """The `top` pairs with the highest scores, the best first; none below the threshold.

    folder: for the state of the work, so that it can be resumed
    """
    checkpoint = PairCheckpoint(folder, ["top", top, threshold, BLOCK])
    best, done = checkpoint.read()
    for row in range(done, len(blocks)):
        pending = [best]
        floor = _floor(best, top, threshold)
        for column in range(row, len(blocks)):
            pairs = _above(blocks[row], blocks[column], floor, top)
            pending.append(pairs)
            if sum(map(len, pending)) > len(best) + max(top, PENDING):
                pending = [_best(pending, top)]
                floor = _floor(pending[0], top, threshold)
            elif len(pairs) >= top:
                floor = max(floor, float(np.partition(pairs["score"], -top)[-top]))
            _report(progress, row, column, len(blocks))
        best = _best(pending, top)
        checkpoint.replace(best, row + 1)
    return best


def pairs_above(
    blocks: Sequence[VectorBlock], folder: Path, *, threshold: float, progress: Progress = silent
) -> Records:
    """All pairs that score at least the threshold, sorted by first and second row, on disk."""
    checkpoint = PairCheckpoint(folder, ["all", threshold, BLOCK])
    pairs, done = checkpoint.read()
    size = len(pairs)
    for row in range(done, len(blocks)):
        begin = size
        for column in range(row, len(blocks)):
            size = checkpoint.write(_above(blocks[row], blocks[column], threshold, None), size)
            _report(progress, row, column, len(blocks))
        if size > begin:
            mapped = np.memmap(checkpoint.path, RECORD, mode="r+", shape=(size,))
            mapped[begin:].sort(order=["first", "second"])
            mapped.flush()
        checkpoint.note(size, row + 1)
    return checkpoint.read()[0]


class PairCheckpoint:
    """Pairs in a file, and the number of finished rows of blocks."""

    def __init__(self, folder: Path, key: list[object]) -> None:
        self.path = folder / FOUND
        self._state = folder / STATE
        self._key = key

    def read(self) -> tuple[Records, int]:
        """The pairs (mapped, not copied), and the number of finished rows of blocks."""
        try:
            key, size, done = parse_json(self._state.read_text("utf-8"))
        except (FileNotFoundError, ValueError, TypeError):
            key, size, done = None, 0, 0
        if key != self._key or not size:
            return np.empty(0, RECORD), done if key == self._key else 0
        return np.memmap(self.path, RECORD, mode="r", shape=(size,)), done

    def write(self, pairs: Records, size: int) -> int:
        """Write pairs after the first `size` ones. Returns the new number of pairs."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.seek(size * RECORD.itemsize)
            pairs.tofile(file)
        return size + len(pairs)

    def replace(self, pairs: Records, done: int) -> None:
        # The pairs may be mapped from the file that is replaced here.
        copied = np.array(pairs)
        with replace_file(self.path) as writing:
            copied.tofile(writing)
        self.note(len(copied), done)

    def note(self, size: int, done: int) -> None:
        write_json(self._state, [self._key, size, done])


def _report(progress: Progress, row: int, column: int, count: int) -> None:
    before = row * count - row * (row - 1) // 2
    progress(before + column - row + 1, count * (count + 1) // 2)


def _floor(best: Records, top: int, threshold: float | None) -> float:
    """The score that a pair needs to be among the best."""
    least = -np.inf if threshold is None else threshold
    return max(least, float(best["score"][top - 1])) if len(best) >= top else least


def _best(pending: Sequence[Records], top: int) -> Records:
    pairs = np.concatenate(pending)
    order = np.lexsort((pairs["second"], pairs["first"], -pairs["score"]))[:top]
    best: Records = pairs[order]
    return best


def _above(rows: VectorBlock, columns: VectorBlock, floor: float, top: int | None) -> Records:
    """The pairs of two blocks that score at least `floor`.

    With `top`, pairs that cannot be among the `top` best of these blocks are dropped.
    """
    products = rows.vectors @ columns.vectors.T
    if rows.start == columns.start:
        products[np.tri(len(products), dtype=np.bool_)] = -2.0
    floor = max(floor, -1.5)
    if float(products.max()) < floor - SLACK:
        return np.empty(0, RECORD)
    near = products >= floor - SLACK
    if top is not None and np.count_nonzero(near) > 2 * top:
        floor = max(floor, float(np.partition(products[near], -top)[-top]) - SLACK)
        near = products >= floor - SLACK
    first, second = np.nonzero(near)
    pairs = np.empty(len(first), RECORD)
    pairs["first"] = rows.start + first
    pairs["second"] = columns.start + second
    for start in range(0, len(first), CHECKED):
        chunk = slice(start, start + CHECKED)
        exact = rows.vectors[first[chunk]].astype(np.float64)
        pairs["score"][chunk] = np.einsum("nd,nd->n", exact, columns.vectors[second[chunk]])
    above: Records = pairs[pairs["score"] >= floor]
    return above
