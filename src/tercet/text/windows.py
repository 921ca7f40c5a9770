"""Windows: parts of texts that are too long to be read at once, and what is made of their results.

A window ends at the end of a sentence if one ends in its second half, and the next one begins with
up to a quarter of it again, whole sentences if possible. Results are averaged, weighted by pieces.

A joined pair is cut on its longer side: each of its windows is read with all of the shorter side.
If that fills more than half of the room, both sides are cut into windows of half the room, and read
side by side: the windows of the side that has fewer are repeated evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.specs import Floats
from tercet.text.template import Template, room_for
from tercet.text.tokens import Pieces, Rows, offsets_of, spans

OVERLAP = 4
"""A window repeats at most the last quarter of the one before."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Texts or joined pairs as windows that the encoder reads at once.

    columns: the pieces of m windows, of each side
    owners: the row that each window is a part of, rising, int64 [m]
    weights: pieces of each window, int64 [m]
    rows: number of texts or pairs
    """

    columns: tuple[Pieces, ...]
    owners: Rows
    weights: Rows
    rows: int

    def __len__(self) -> int:
        return len(self.owners)

    def places(self, rows: Rows) -> Rows:
        """The windows of these rows [n], row after row."""
        starts = np.searchsorted(self.owners, np.arange(self.rows + 1))
        return spans(starts[rows], np.diff(starts)[rows])

    def take(self, rows: Rows) -> Windows:
        """The windows of these rows [n], in their order."""
        places = self.places(rows)
        counts = np.bincount(self.owners, minlength=self.rows)[rows]
        columns = tuple(column.take(places) for column in self.columns)
        owners = np.repeat(np.arange(len(rows)), counts)
        return Windows(columns, owners, self.weights[places], len(rows))

    def average(self, values: Floats) -> Floats:
        """values of windows [m, k] -> their averages for each text or pair, float32 [rows, k]"""
        starts = np.searchsorted(self.owners, np.arange(self.rows + 1))
        averages = values[starts[:-1]]
        for row in np.flatnonzero(np.diff(starts) > 1):
            own = slice(starts[row], starts[row + 1])
            averages[row] = np.average(values[own], axis=0, weights=self.weights[own])
        return averages


def windows_of(
    columns: Sequence[Pieces], rows: Rows | None = None, *, template: Template, max_tokens: int
) -> Windows | None:
    """The windows of texts (one column) or joined pairs (two), or of those at `rows`; None if none
    of them is read in windows."""
    if all(column.ends is None for column in columns):
        return None
    room = room_for(template, sides=len(columns), max_tokens=max_tokens)
    held = np.stack([column.held if rows is None else column.held[rows] for column in columns])
    long_rows = np.flatnonzero(held.sum(axis=0) > room)
    if not len(long_rows):
        return None
    if room < len(columns):
        raise TercetError(f"max_tokens = {max_tokens} leaves no room for windows of both texts.")
    chosen = columns if rows is None else [column.take(rows) for column in columns]
    return _expand(chosen, held, long_rows, room=room)


def _expand(columns: Sequence[Pieces], held: Rows, long_rows: Rows, *, room: int) -> Windows:
    """held: pieces of each side of each row, int64 [sides, rows]"""
    cuts = [_cut_row([_ends(side, row) for side in columns], room=room) for row in long_rows]
    counts = np.ones(held.shape[1], np.int64)
    counts[long_rows] = [len(weights) for _, _, weights in cuts]
    owners = np.repeat(np.arange(held.shape[1]), counts)
    starts = np.stack([column.offsets[:-1] for column in columns])[:, owners]
    lengths = held[:, owners]
    weights = lengths.sum(axis=0)
    first = offsets_of(counts)
    for row, cut in zip(long_rows, cuts, strict=True):
        own = slice(first[row], first[row + 1])
        starts[:, own] += cut[0]
        lengths[:, own], weights[own] = cut[1], cut[2]
    parts = tuple(
        Pieces(column.ids[spans(start, length)], offsets_of(length), length)
        for column, start, length in zip(columns, starts, lengths, strict=True)
    )
    return Windows(parts, owners, weights, held.shape[1])


def _ends(column: Pieces, row: int) -> NDArray[np.bool_]:
    start, end = column.offsets[row : row + 2]
    return np.zeros(end - start, np.bool_) if column.ends is None else column.ends[start:end]


def _cut_row(sides: Sequence[NDArray[np.bool_]], *, room: int) -> tuple[Rows, Rows, Rows]:
    """Starts and lengths of one row's k windows, int64 [sides, k] each, and their weights [k].

    sides: whether a sentence ends after each piece of each side
    """
    rooms = [room]
    if len(sides) == 2:
        shorter = int(len(sides[1]) < len(sides[0]))
        kept = min(len(sides[shorter]), room // 2)
        rooms = [kept if side == shorter else room - kept for side in range(2)]
    cuts = [cut_text(ends, room=own) for ends, own in zip(sides, rooms, strict=True)]
    most = max(map(len, cuts))
    spread = np.stack([cut[np.arange(most) * len(cut) // most] for cut in cuts])
    starts, lengths = spread[:, :, 0], spread[:, :, 1] - spread[:, :, 0]
    return starts, lengths, lengths[int(np.argmax([len(cut) for cut in cuts]))]


def cut_text(ends: NDArray[np.bool_], *, room: int) -> Rows:
    """Where the windows of one text start and end, int64 [k, 2]; each has at most `room` pieces.

    ends: whether a sentence ends after each piece
    """
    begins = np.flatnonzero(ends) + 1
    windows: list[tuple[int, int]] = []
    start = 0
    while len(ends) - start > room:
        place = int(np.searchsorted(begins, start + room, side="right"))
        is_sentence = place > 0 and begins[place - 1] > start + room // 2
        end = int(begins[place - 1]) if is_sentence else start + room
        windows.append((start, end))
        overlap = end - room // OVERLAP
        place = int(np.searchsorted(begins, overlap))
        # Whole sentences again; nothing where a single long one ends; else a part of this one.
        is_sentence = place < len(begins) and begins[place] <= end
        start = int(begins[place]) if is_sentence else overlap
    return np.array([*windows, (start, len(ends))], np.int64)
