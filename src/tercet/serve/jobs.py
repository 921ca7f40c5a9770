"""Requests to the encoder: texts or pairs, and the head that predicts from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tercet.infer.base import BaseEngine
from tercet.infer.batches import Rows
from tercet.specs import Floats, Mode
from tercet.text.tokens import Pieces
from tercet.text.windows import Windows


@dataclass(frozen=True, slots=True)
class HeadRef:
    """The head of a task in one mode.

    needs_tokens: whether it reads tokens, not only vectors
    side: the task whose side weights encode its inputs; None: the plain encoder does
    """

    task: str
    mode: Mode
    needs_tokens: bool
    side: str | None = None


@dataclass(frozen=True, slots=True)
class EncodingRequest:
    """The inputs of one request.

    engine: of the model that answers it; requests in the queue may be for different ones
    columns: word pieces of texts, or of the first and of the second texts of pairs that are
        encoded jointly; in mode `bi` all second texts follow the first ones in one column
    lengths: tokens of each row, int64 [rows]
    inputs: number of texts or pairs, as the client counts them
    head: the head that predicts; None for vectors
    client: who asks; clients share the encoder evenly
    windows: what the columns are windows of; None: every row is an input, or one side of it
    """

    engine: BaseEngine
    columns: Sequence[Pieces]
    lengths: Rows
    inputs: int
    head: HeadRef | None = None
    client: str = ""
    windows: Windows | None = None

    @property
    def joint(self) -> bool:
        return len(self.columns) == 2

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def average(self, values: Floats) -> Floats:
        """values of all rows -> of the texts or pairs that they are windows of"""
        return values if self.windows is None else self.windows.average(values)


@dataclass(eq=False, slots=True)
class EncodingJob:
    """A request in the queue.

    order: its rows, those of similar length together if they may need several batches
    ends: tokens of all rows of `order` up to each one, int64 [rows]
    tokens, encoded: tokens of all rows, and of those that are encoded
    taken, used: number of rows of `order` that batches have taken, and their tokens
    left: number of rows that are not encoded yet
    result: vectors, or outputs of a head that needs tokens, float32 [rows, ...]; at the end
        predictions
    """

    request: EncodingRequest
    future: asyncio.Future[Floats]
    order: Rows
    ends: Rows
    tokens: int
    left: int
    encoded: int = 0
    taken: int = 0
    used: int = 0
    result: Floats | None = None
    since: float = field(default_factory=time.monotonic)

    @classmethod
    def of(
        cls, request: EncodingRequest, future: asyncio.Future[Floats], *, budget: int
    ) -> EncodingJob:
        """budget: tokens of a batch"""
        lengths, order = request.lengths, np.arange(request.rows)
        ends = np.cumsum(lengths)
        if ends[-1] > budget:
            order = np.argsort(-lengths, kind="stable")
            ends = np.cumsum(lengths[order])
        tokens = int(ends[-1])
        return cls(request, future, order=order, ends=ends, tokens=tokens, left=request.rows)

    @property
    def waiting_rows(self) -> int:
        """Rows that no batch has taken yet."""
        return len(self.order) - self.taken

    def take(self, budget: int, *, room: int | None) -> JobPart | None:
        """The next rows, up to `budget` tokens but at least one; None if it exceeds the room."""
        used, start = self.used, self.taken
        left = self.tokens - used
        if left <= budget and (room is None or left <= room):  # as for most requests
            self.taken, self.used = len(self.order), self.tokens
            return JobPart(self, self.order[start:], left)
        end = max(int(np.searchsorted(self.ends, used + budget, side="right")), start + 1)
        tokens = int(self.ends[end - 1]) - used
        if room is not None and tokens > room:
            end = int(np.searchsorted(self.ends, used + room, side="right"))
            if end <= start:
                return None
            tokens = int(self.ends[end - 1]) - used
        self.taken, self.used = end, used + tokens
        return JobPart(self, self.order[start:end], tokens)

    def store(self, rows: Rows, values: Floats) -> bool:
        """Store what a batch gave for some rows; whether these were the last."""
        if self.result is None:
            self.result = np.empty((self.request.rows, values.shape[1]), np.float32)
        self.result[rows] = values
        self.left -= len(rows)
        self.encoded += int(self.request.lengths[rows].sum())
        return self.left == 0


@dataclass(frozen=True, slots=True)
class JobPart:
    """Some rows of a job."""

    job: EncodingJob
    rows: Rows
    tokens: int
