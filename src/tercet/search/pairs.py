"""Closest pairs of vectors, exactly: products block by block, in memory that does not grow.

Pairs are (first, second) with first < second. What the products of float32 blocks propose is
computed again in float64, so that neither the size of blocks nor the number of threads shows in
the result; among equal scores the earlier pair comes first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.embed.staged import aside

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Records = NDArray[np.void]
Progress = Callable[[int, int], object]
"""Told how many blocks are done, and how many there are."""

BLOCK = 2048
RECORD = np.dtype([("first", "<i8"), ("second", "<i8"), ("score", "<f4")])
# How much a product in float32 may be off.
SLACK = 1e-5
CHECKED = 4096
PENDING = 1 << 20
STATE, FOUND = "state.json", "pairs.bin"


@dataclass(frozen=True, slots=True)
class Block:
    """Vectors [n, width] of the rows from `start` on."""

    start: int
    vectors: Floats


def blocks_of(parts: Sequence[Floats]) -> list[Block]:
    """Parts [n, width] that follow each other, cut into blocks."""
    blocks: list[Block] = []
    start = 0
    for part in parts:
        begins = range(0, len(part), BLOCK)
        blocks += [Block(start + begin, part[begin : begin + BLOCK]) for begin in begins]
        start += len(part)
    return blocks


def closest_pairs(
    blocks: Sequence[Block],
    folder: Path,
    *,
    top: int,
    threshold: float | None = None,
    progress: Progress | None = None,
) -> Records:
    """The `top` pairs of the highest scores, the best first; none below the threshold.

    folder: where it is noted how far the work is, so that it can be gone on with
    """
    journal = Journal(folder, ["top", top, threshold, BLOCK])
    kept, done = journal.read()
    for row in range(done, len(blocks)):
        pending = [kept]
        floor = _floor(kept, top, threshold)
        for column in range(row, len(blocks)):
            found = _above(blocks[row], blocks[column], floor, top)
            pending.append(found)
            if sum(map(len, pending)) > len(kept) + max(top, PENDING):
                pending = [_best(pending, top)]
                floor = _floor(pending[0], top, threshold)
            elif len(found) >= top:
                floor = max(floor, float(np.partition(found["score"], -top)[-top]))
            _tell(progress, row, column, len(blocks))
        kept = _best(pending, top)
        journal.replace(kept, row + 1)
    return kept


def pairs_above(
    blocks: Sequence[Block],
    folder: Path,
    *,
    threshold: float,
    progress: Progress | None = None,
) -> Records:
    """All pairs whose score is at least the threshold, by first and second row, on the disk."""
    journal = Journal(folder, ["all", threshold, BLOCK])
    kept, done = journal.read()
    size = len(kept)
    for row in range(done, len(blocks)):
        begin = size
        for column in range(row, len(blocks)):
            found = _above(blocks[row], blocks[column], threshold, None)
            size = journal.write(found, size)
            _tell(progress, row, column, len(blocks))
        if size > begin:
            mapped = np.memmap(journal.path, RECORD, mode="r+", shape=(size,))
            mapped[begin:].sort(order=["first", "second"])
            mapped.flush()
        journal.note(size, row + 1)
    return journal.read()[0]


class Journal:
    """Pairs in a file, and how many rows of blocks they are the result of."""

    def __init__(self, folder: Path, key: list[object]) -> None:
        self.path = folder / FOUND
        self._state = folder / STATE
        self._key = key

    def read(self) -> tuple[Records, int]:
        """The pairs that are noted (mapped, not copied), and the rows of blocks."""
        try:
            key, size, done = json.loads(self._state.read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            key, size, done = None, 0, 0
        if key != self._key or not size:
            return np.empty(0, RECORD), done if key == self._key else 0
        return np.memmap(self.path, RECORD, mode="r", shape=(size,)), done

    def write(self, found: Records, size: int) -> int:
        """Put pairs behind the first `size` ones; how many there are then."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.seek(size * RECORD.itemsize)
            found.tofile(file)
        return size + len(found)

    def replace(self, kept: Records, done: int) -> None:
        # The old pairs are read from a mapped file, which must stay as it is until then.
        copied = np.array(kept)
        with aside(self.path) as writing:
            copied.tofile(writing)
        self.note(len(copied), done)

    def note(self, size: int, done: int) -> None:
        with aside(self._state) as writing:
            writing.write_text(json.dumps([self._key, size, done]), "utf-8")


def _tell(progress: Progress | None, row: int, column: int, count: int) -> None:
    if progress is not None:
        before = row * count - row * (row - 1) // 2
        progress(before + column - row + 1, count * (count + 1) // 2)


def _floor(kept: Records, top: int, threshold: float | None) -> float:
    """A score below which no pair can be among the best any more."""
    least = -np.inf if threshold is None else threshold
    return max(least, float(kept["score"][top - 1])) if len(kept) >= top else least


def _best(pending: Sequence[Records], top: int) -> Records:
    pairs = np.concatenate(pending)
    order = np.lexsort((pairs["second"], pairs["first"], -pairs["score"]))[:top]
    best: Records = pairs[order]
    return best


def _above(rows: Block, columns: Block, floor: float, top: int | None) -> Records:
    """The pairs of two blocks that score at least `floor`; more than `top` only where it is close.

    With `top`, pairs that cannot be among the `top` best of these blocks are left out.
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
    found = np.empty(len(first), RECORD)
    found["first"] = rows.start + first
    found["second"] = columns.start + second
    for pairs in _chunks(len(first)):
        one = rows.vectors[first[pairs]].astype(np.float64)
        found["score"][pairs] = np.einsum("nd,nd->n", one, columns.vectors[second[pairs]])
    kept: Records = found[found["score"] >= floor]
    return kept


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, start + CHECKED) for start in range(0, count, CHECKED))
