"""Work for the encoder: the texts or pairs of one request, and the head that is to read them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tercet.infer.batches import Rows, batches
from tercet.specs import Mode
from tercet.text.tokens import Pieces

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reader:
    """A head of a task, whose predictions are wanted.

    whole: whether it needs the tokens, not only vectors
    """

    task: str
    mode: Mode
    whole: bool


@dataclass(frozen=True, slots=True)
class Work:
    """What a request wants to know.

    columns: word pieces of texts, or of the first and of the second texts of pairs that are
        encoded jointly; a `bi` reader's second texts follow all first ones in the one column
    lengths: tokens that each row costs the encoder, int64 [rows]
    inputs: texts or pairs, as the client counts them
    reader: None where the vectors themselves are wanted
    """

    columns: Sequence[Pieces]
    lengths: Rows
    inputs: int
    reader: Reader | None = None

    @property
    def joint(self) -> bool:
        return len(self.columns) == 2

    @property
    def rows(self) -> int:
        return len(self.lengths)


@dataclass(eq=False, slots=True)
class Job:
    """Work on its way.

    found: vectors, or outputs of a head that needs tokens, float32 [rows, ...]; predictions at last
    parts: the rows that no batch has taken yet
    left: rows that are not encoded yet
    """

    work: Work
    future: asyncio.Future[Floats]
    tokens: int
    parts: deque[Rows]
    left: int
    found: Floats | None = None
    since: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, work: Work, future: asyncio.Future[Floats], *, budget: int) -> Job:
        """Cut work into parts of rows of like length, each within the token budget."""
        tokens = int(work.lengths.sum())
        whole = [np.arange(work.rows)]
        parts = whole if tokens <= budget else batches(work.lengths, budget=budget)
        return cls(work=work, future=future, tokens=tokens, parts=deque(parts), left=work.rows)

    def keep(self, rows: Rows, found: Floats) -> None:
        """Put what a batch found for some rows into their places."""
        if self.found is None:
            self.found = np.empty((self.work.rows, found.shape[1]), np.float32)
        self.found[rows] = found
        self.left -= len(rows)


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a job."""

    job: Job
    rows: Rows
    tokens: int
