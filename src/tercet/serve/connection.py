"""Connections that do not wait forever for a client that says nothing."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

SILENCE = 10.0
"""Seconds for the head of a request to come, and for what is left of a refused body to end."""


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's connection, cut off when a request's head, or the rest of a refused one, lingers.

    uvicorn itself only limits how long a connection may be idle between requests.
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
        self._cut = self.loop.call_later(SILENCE, self.transport.abort)
