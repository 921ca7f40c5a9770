"""Whose turn it is: clients take turns, and each client's requests take turns within its share."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tercet.serve.jobs import EncodingJob, JobPart

TURNS = 4
"""A request that is longer than this part of a batch is encoded over several turns."""


def turn_tokens(batch_tokens: int) -> int:
    """The tokens of one turn."""
    return max(batch_tokens // TURNS, 1)


class Turns:
    """The jobs that wait, by client. Used by the encoder's thread alone.

    A turn is a part of a batch: short jobs are encoded whole, and a long one waits for the others
    before its next turn.
    """

    def __init__(self) -> None:
        self._clients: dict[str, deque[EncodingJob]] = {}
        self._order: deque[str] = deque()

    def __len__(self) -> int:
        """The number of clients that wait."""
        return len(self._order)

    def add(self, job: EncodingJob) -> None:
        client = job.request.client
        if client not in self._clients:
            self._clients[client] = deque()
            self._order.append(client)
        self._clients[client].append(job)

    def remove(self, jobs: Iterable[EncodingJob]) -> None:
        """Forget jobs that have failed."""
        gone = set(jobs)
        for client in list(self._order):
            self._clients[client] = deque(j for j in self._clients[client] if j not in gone)
            if not self._clients[client]:
                self._forget(client)

    def fill(self, budget: int) -> list[JobPart]:
        """The parts of the next batch, within a token budget; one row may exceed it."""
        parts: list[JobPart] = []
        turn = budget if self._alone() else turn_tokens(budget)
        while self._order and budget > 0:
            client = self._order[0]
            taken = self._turn(client, turn, room=budget, empty=not parts)
            parts += taken
            budget -= sum(part.tokens for part in taken)
            if not self._clients[client]:
                self._forget(client)
            elif not taken:  # the next row is for the next batch
                break
            else:
                self._order.rotate(-1)
        return parts

    def _alone(self) -> bool:
        return len(self._order) == 1 and len(self._clients[self._order[0]]) == 1

    def _turn(self, client: str, turn: int, *, room: int, empty: bool) -> list[JobPart]:
        """What one client encodes in its turn, by its own jobs in turns.

        room: tokens that are left in the batch
        empty: whether the batch has nothing yet, so that a row of any length fits
        """
        jobs = self._clients[client]
        parts: list[JobPart] = []
        used = 0
        while jobs and used < min(turn, room):
            job = jobs.popleft()
            if job.future.done():  # its client has left, or it has timed out
                continue
            part = job.take(turn - used, room=None if empty and not parts else room - used)
            if part is None:
                jobs.appendleft(job)
                break
            parts.append(part)
            used += part.tokens
            if job.waiting_rows:
                jobs.append(job)
        return parts

    def _forget(self, client: str) -> None:
        del self._clients[client]
        self._order.remove(client)
