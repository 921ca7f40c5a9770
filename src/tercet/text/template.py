"""Special tokens around a text or a pair, and truncation of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

from tercet.errors import TercetError
from tercet.text.tokens import Pieces, Rows, Tokens, offsets_of, spans


class Slot(NamedTuple):
    """A part of a row: a special token (text is None), or all pieces of text 0 or 1."""

    text: int | None
    id: int
    type: int


@dataclass(frozen=True, slots=True)
class Template:
    """The layout of a row: slots for one text, and slots for two."""

    single_slots: tuple[Slot, ...]
    pair_slots: tuple[Slot, ...]

    @classmethod
    def probe(cls, backend: Backend) -> Template:
        """Read the layout off a short text and a short pair that the tokenizer encodes."""
        return cls(_slots(backend.encode("a")), _slots(backend.encode("a", "a")))

    @property
    def special_ids(self) -> frozenset[int]:
        return frozenset(
            slot.id for slot in self.single_slots + self.pair_slots if slot.text is None
        )

    def single(self, pieces: Pieces, rows: Rows | None = None, *, max_tokens: int) -> Tokens:
        """Tokens of single texts: all of `pieces`, or the texts at `rows` [n] in that order.

        A row keeps at most `max_tokens` tokens, special ones included.
        """
        starts, held, lengths = _extents(pieces, rows)
        left = np.minimum(held, _room(self.single_slots, max_tokens))
        ids = [(pieces.ids, starts, left)]
        return _assemble(self.single_slots, ids, truncated=int(np.count_nonzero(left < lengths)))

    def pair(
        self, first: Pieces, second: Pieces, rows: Rows | None = None, *, max_tokens: int
    ) -> Tokens:
        """Tokens of joined pairs: text i of `first` with text i of `second`.

        A pair that is too long loses pieces from its longer side until both are equally long,
        then from both. For texts that were cut before, the lengths before the cut count.
        """
        if len(first) != len(second):
            raise TercetError(
                f"Pairs need as many first as second texts, not {len(first)} and {len(second)}."
            )
        starts, held, lengths = _extents(first, rows)
        other_starts, other_held, other_lengths = _extents(second, rows)
        room = _room(self.pair_slots, max_tokens)
        left, other_left = longest_first(lengths, other_lengths, room=room)
        left, other_left = np.minimum(left, held), np.minimum(other_left, other_held)
        cut = (left < lengths) | (other_left < other_lengths)
        ids = [(first.ids, starts, left), (second.ids, other_starts, other_left)]
        return _assemble(self.pair_slots, ids, truncated=int(np.count_nonzero(cut)))


def longest_first(first: Rows, second: Rows, *, room: int) -> tuple[Rows, Rows]:
    """How many pieces of each side [n] stay if both together may have `room` pieces.

    If both sides are cut and `room` is odd, the odd piece goes to the longer side, or to the
    second of two equal ones, as in `tokenizers`.
    """
    shorter, longer = np.minimum(first, second), np.maximum(first, second)
    half = room // 2
    fits = first + second <= room
    halved = ~fits & (shorter > half)
    keep_shorter = np.where(halved, half, shorter)
    keep_longer = np.where(fits, longer, room - keep_shorter)
    swapped = first > second
    return (
        np.where(swapped, keep_longer, keep_shorter),
        np.where(swapped, keep_shorter, keep_longer),
    )


def _slots(encoding: Encoding) -> tuple[Slot, ...]:
    texts = encoding.sequence_ids
    special = encoding.special_tokens_mask
    slots = [
        Slot(None, id_, type_) if mark or text is None else Slot(text, -1, type_)
        for id_, type_, mark, text in zip(
            encoding.ids, encoding.type_ids, special, texts, strict=True
        )
    ]
    # Two equal special tokens in a row (MPNet's pairs) stay two; pieces of one text are one slot.
    merged: list[Slot] = []
    for slot, run in groupby(slots):
        merged.extend(run if slot.text is None else [slot])
    return tuple(merged)


def special_count(slots: tuple[Slot, ...]) -> int:
    """Special tokens of a row."""
    return sum(slot.text is None for slot in slots)


def room_for(template: Template, *, sides: int, max_tokens: int) -> int:
    """How many pieces a row of one text, or a pair, has room for."""
    return _room(template.single_slots if sides == 1 else template.pair_slots, max_tokens)


def _room(slots: tuple[Slot, ...], max_tokens: int) -> int:
    special = special_count(slots)
    if max_tokens <= special:
        raise TercetError(
            f"max_tokens = {max_tokens} leaves no room for text besides {special} special tokens."
        )
    return max_tokens - special


def _extents(pieces: Pieces, rows: Rows | None) -> tuple[Rows, Rows, Rows]:
    """Start in `ids`, pieces held, and pieces before any cut, of the selected texts, each [n]."""
    starts, ends, lengths = pieces.offsets[:-1], pieces.offsets[1:], pieces.lengths
    if rows is not None:
        starts, ends, lengths = starts[rows], ends[rows], lengths[rows]
    return starts, ends - starts, lengths


def _assemble(
    slots: tuple[Slot, ...],
    texts: Sequence[tuple[NDArray[np.int32], Rows, Rows]],
    *,
    truncated: int,
) -> Tokens:
    """Fill the slots of every row; `texts`: ids, starts [n] and lengths [n] of each text."""
    if len(texts[0][1]) == 1:
        return _assemble_row(slots, texts, truncated=truncated)
    special = np.full(len(texts[0][1]), special_count(slots))
    totals = sum((lengths for _, _, lengths in texts), start=special)
    offsets = offsets_of(totals)
    ids = np.empty(offsets[-1], np.int32)
    types = np.empty(offsets[-1], np.int32)
    cursor = offsets[:-1].copy()
    for slot in slots:
        if slot.text is None:
            ids[cursor], types[cursor] = slot.id, slot.type
            cursor += 1
            continue
        source, starts, lengths = texts[slot.text]
        target = spans(cursor, lengths)
        ids[target] = source[spans(starts, lengths)]
        types[target] = slot.type
        cursor += lengths
    longest = int(totals.max(initial=0))
    return Tokens(ids=ids, types=types, offsets=offsets, longest=longest, truncated=truncated)


def _assemble_row(
    slots: tuple[Slot, ...],
    texts: Sequence[tuple[NDArray[np.int32], Rows, Rows]],
    *,
    truncated: int,
) -> Tokens:
    """`_assemble` for a single row, which is faster."""
    pieces = [ids[starts[0] : starts[0] + lengths[0]] for ids, starts, lengths in texts]
    filled = [[slot.id] if slot.text is None else pieces[slot.text] for slot in slots]
    ids = np.concatenate(filled, dtype=np.int32)
    types = np.repeat(np.array([slot.type for slot in slots], np.int32), list(map(len, filled)))
    offsets = np.array([0, len(ids)])
    return Tokens(ids=ids, types=types, offsets=offsets, longest=len(ids), truncated=truncated)
