"""Requests to the encoder: texts or pairs, and the head that predicts from them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tercet.infer.base import BaseEngine
from tercet.infer.batches import Rows, batches
from tercet.specs import Floats, Mode
from tercet.text.tokens import Pieces


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
    """

    engine: BaseEngine
    columns: Sequence[Pieces]
    lengths: Rows
    inputs: int
    head: HeadRef | None = None

    @property
    def joint(self) -> bool:
        return len(self.columns) == 2

    @property
    def rows(self) -> int:
        return len(self.lengths)


@dataclass(eq=False, slots=True)
class EncodingJob:
    """A request in the queue.

    parts: rows that no batch has taken yet
    left: number of rows that are not encoded yet
    result: vectors, or outputs of a head that needs tokens, float32 [rows, ...]; at the end
        predictions
    """

    request: EncodingRequest
    future: asyncio.Future[Floats]
    tokens: int
    parts: deque[Rows]
    left: int
    result: Floats | None = None
    since: float = field(default_factory=time.monotonic)

    @classmethod
    def of(
        cls, request: EncodingRequest, future: asyncio.Future[Floats], *, budget: int
    ) -> EncodingJob:
        """Cut a request into parts of rows of similar length, each within the token budget."""
        tokens = int(request.lengths.sum())
        parts = [np.arange(request.rows)]
        if tokens > budget:
            parts = batches(request.lengths, budget=budget)
        return cls(request, future, tokens=tokens, parts=deque(parts), left=request.rows)

    def store(self, rows: Rows, values: Floats) -> None:
        """Store what a batch gave for some rows."""
        if self.result is None:
            self.result = np.empty((self.request.rows, values.shape[1]), np.float32)
        self.result[rows] = values
        self.left -= len(rows)


@dataclass(frozen=True, slots=True)
class JobPart:
    """Some rows of a job."""

    job: EncodingJob
    rows: Rows
    tokens: int
