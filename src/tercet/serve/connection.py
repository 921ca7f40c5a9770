"""Connections with a time limit for clients that send nothing."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
"""Seconds for the head of a request to arrive, and for the rest of a refused body."""


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's connection, closed when the head or the rest of a refused request is late.

    uvicorn itself only limits the idle time between requests.
    """

    _cut: asyncio.TimerHandle | None = None

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

    def connection_lost(self, exc: Exception | None) -> None:
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._cut = self.loop.call_later(HEAD_SECONDS, self.transport.abort)
