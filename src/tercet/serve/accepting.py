"""Accepting connections: workers share one socket, and the one with the fewest goes first.

A worker that wakes first would otherwise take all that are waiting, and on a connection that stays
open all later requests are its own, however little the others have to do.
"""

from __future__ import annotations

import asyncio
import mmap
import socket
from collections.abc import Callable, Sized
from contextlib import suppress

from tercet.serve.logs import log

BACKLOG = 2048
"""Connections that wait to be accepted, also while no worker runs."""
YIELD_SECONDS = 0.005
"""Seconds that a worker leaves to those with fewer connections; then it accepts after all."""
RETRY_SECONDS = 1.0
"""Seconds before the next attempt when the process has no file descriptors left."""
GONE = 2**62
"""The number of connections of a worker that accepts none."""


class Occupancy:
    """The number of open connections of each worker, in memory that all of them share."""

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, 8 * workers)).cast("q")
        self.place = 0
        """The place of this worker among all."""
        for place in range(workers):
            self.leave(place)

    @property
    def count(self) -> int:
        """The connections of this worker."""
        return self._counts[self.place]

    @count.setter
    def count(self, connections: int) -> None:
        self._counts[self.place] = connections

    @property
    def another_has_fewer(self) -> bool:
        return min(self._counts) < self.count

    def leave(self, place: int) -> None:
        """Nobody waits any more for the worker at this place to accept."""
        self._counts[place] = GONE


class Acceptor:
    """Accepts connections of one worker, one per turn of the event loop."""

    def __init__(self, listener: socket.socket, occupancy: Occupancy) -> None:
        self.listener = listener
        self.occupancy = occupancy
        self._pause: asyncio.TimerHandle | None = None
        self._openings: set[asyncio.Task[None]] = set()
        self._accepting = False

    def start(self, protocol: Callable[[], asyncio.Protocol], connections: Sized) -> None:
        """protocol: what answers a new connection; connections: those that are open"""
        self._protocol = protocol
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self.listener.listen(BACKLOG)
        self._accepting = True
        self.count()
        self._loop.add_reader(self.listener, self._take_turn)

    def count(self) -> None:
        """Tell the other workers how many connections this one has; called when one closes."""
        if self._accepting:
            self.occupancy.count = len(self._connections) + len(self._openings)

    def stop(self) -> None:
        """Accept nothing more."""
        self._accepting = False
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self.listener)
        self.occupancy.leave(self.occupancy.place)
        self.listener.close()

    def _take_turn(self) -> None:
        if self.occupancy.another_has_fewer:
            self._wait(YIELD_SECONDS)
        else:
            self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self.listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # another worker has it, or it has left
            return
        except OSError as error:
            log("not-accepting", reason=error.strerror)
            self._wait(RETRY_SECONDS)
            return
        connection.setblocking(False)
        opening = self._loop.create_task(self._open(connection))
        self._openings.add(opening)
        opening.add_done_callback(self._opened)
        self.count()

    def _opened(self, opening: asyncio.Task[None]) -> None:
        self._openings.discard(opening)
        self.count()

    async def _open(self, connection: socket.socket) -> None:
        with suppress(OSError):  # the client has left
            await self._loop.connect_accepted_socket(self._protocol, connection)

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self.listener)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self.listener, self._take_turn)
        self._accept()
