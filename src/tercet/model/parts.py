"""Long work on texts in parts, so that reading and encoding overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from tercet.infer.ahead import ahead
from tercet.progress import Progress, silent
from tercet.specs import Floats
from tercet.text.tokens import Pieces


def by_parts(
    texts: Sequence[Sequence[str]],
    work: Callable[[Sequence[Pieces], Progress], Floats],
    progress: Progress,
    *,
    size: int | None,
    read: Callable[[Sequence[str]], Pieces],
    count: Callable[[Sequence[Pieces]], None],
) -> Floats:
    """What `work` gives for columns of n texts, [n, ...].

    With a GPU, it is done in parts: word pieces of the next rows are made, and those before are
    packed and copied, while it encodes.

    size: rows of a part; None: all of them
    read: the word pieces of texts
    count: called for the pieces of each part, in this thread
    """

    def pieces_of(part: Sequence[Sequence[str]]) -> list[Pieces]:
        return [read(column) for column in part]

    def counted(columns: Sequence[Pieces]) -> Sequence[Pieces]:
        count(columns)
        return columns

    rows = len(texts[0])
    if size is None or rows <= size:
        return work(counted(pieces_of(texts)), progress)
    starts = range(0, rows, size)
    parts = [[column[start : start + size] for column in texts] for start in starts]
    pieces = map(counted, ahead(pieces_of, parts))
    results = ahead(lambda columns: work(columns, silent), pieces)
    first = next(results)
    whole = np.empty((rows, *first.shape[1:]), first.dtype)
    for start, result in zip(starts, chain([first], results), strict=True):
        whole[start : start + size] = result
        progress(min(start + size, rows), rows)
    return whole
