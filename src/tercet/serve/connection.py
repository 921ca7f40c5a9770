"""Connections with a time limit for clients that send nothing, and for those that read nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""Seconds for the head of a request to arrive, and for the rest of a refused body."""
LAST_SECONDS = 1.0
"""Seconds after a request's time for the last words, such as a 504, to be read."""


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's connection, closed when the head or the rest of a refused request is late, or when
    an answer is not read in time.

    uvicorn itself only limits the idle time between requests.

    timeout: seconds from a request's head to the last byte of its answer
    on_close: called when the connection is closed
    """

    def __init__(
        self,
        *,
        timeout: float = 30.0,
        on_close: Callable[[], None] = lambda: None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self._timeout = timeout
        self._on_close = on_close
        self._cut: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None
        self._request: object = None
        self._deadline = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy and self._cut is not None:
            self._cut.cancel()
            self._cut = None
        elif not busy and self._cut is None:
            self._expect()
        self._limit()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._cut, self._end):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._on_close()

    def _expect(self) -> None:
        self._cut = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _limit(self) -> None:
        """Give a new request its time; one timer serves all requests of a connection."""
        if self.cycle is not self._request:
            self._request = self.cycle
            self._deadline = self.loop.time() + self._timeout + LAST_SECONDS
        if self._end is None and self.cycle is not None:
            self._end = self.loop.call_at(self._deadline, self._abort_if_late)

    def _abort_if_late(self) -> None:
        self._end = None
        if self.cycle.response_complete and not self.transport.get_write_buffer_size():
            return
        if self.cycle is self._request and self.loop.time() >= self._deadline:
            self.transport.abort()
        else:
            self._limit()
