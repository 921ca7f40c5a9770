"""The gate before all endpoints: keys, draining, time limit, clients that leave, metrics, logs."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import asdict
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tercet.serve.keys import Keys, digest_of
from tercet.serve.logs import log, log_failure
from tercet.serve.metrics import Metrics
from tercet.serve.refusal import RefusalError, shown
from tercet.serve.service import RequestCounts

HEALTH = ("/health", "/health/live", "/health/ready")
"""Paths that answer to any name and without a key."""
OPEN = ("/", "/docs", "/docs.css", "/openapi.json")
"""Paths that need no key: files that are public in the package."""
OPEN_FOLDER = "/web/"
CLOSE = (b"connection", b"close")
FAILED = "The server failed on this request."
NO_REPLY = 499
"""The status in the log for a client that left, as in other servers."""


class Gate:
    """An ASGI app around another."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        metrics: Metrics,
        timeout: float,
        hosts: frozenset[str] | None = None,
    ) -> None:
        """hosts: names that the header Host may have; None: any"""
        self._app = app
        self._keys = keys
        self._hosts = hosts
        self._metrics = metrics
        self._timeout = timeout
        self._ids = count(1)
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        scope["counts"] = counts = RequestCounts()
        reply = Reply(send, id_=f"{os.getpid():x}-{next(self._ids):x}", gate=self, counts=counts)
        try:
            async with asyncio.timeout(self._timeout), Presence(receive) as presence:
                self._check(scope)
                await self._app(scope, presence.receive, reply)
        except RefusalError as refusal:
            await reply.refuse(scope, receive, refusal)
        except TimeoutError:
            await reply.refuse(scope, receive, self._late(scope))
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 (a client gets an answer even to a panic)
            log_failure("request-failed", error, id=reply.id)
            await reply.refuse(scope, receive, RefusalError(500, FAILED))
        self._log(scope, reply, counts, time.monotonic() - began)

    def _check(self, scope: Scope) -> None:
        path = scope["path"]
        if path in HEALTH:
            return
        self._check_host(scope)
        if path in OPEN or path.startswith(OPEN_FOLDER):
            return
        header = next((v for k, v in scope["headers"] if k == b"authorization"), None)
        if not self._keys.admit(header):
            what = "is missing" if header is None else "has no valid key"
            raise RefusalError(401, f"The header Authorization: Bearer KEY {what}.")
        scope["caller"] = self._caller(scope, header)
        if self.draining:
            raise RefusalError(503, "The server is shutting down; use another.", retry_after=1)

    def _check_host(self, scope: Scope) -> None:
        """Refuse requests to another name: a page of another site can have its name resolved to
        this machine, and the browser then takes the answers for that site's own."""
        header = next((v for k, v in scope["headers"] if k == b"host"), None)
        if self._hosts is None or header is None:
            return
        name = host_name(header.decode("latin-1"))
        if name not in self._hosts:
            raise RefusalError(
                421,
                f"The header Host names {shown(name)}, which this server does not answer to; "
                "--allowed-host adds a name.",
            )

    def _caller(self, scope: Scope, header: bytes | None) -> str:
        """Who shares the server with others: the holder of a key, or else an address."""
        if self._keys.closed and header is not None:
            return digest_of(header).hex()
        address = scope.get("client")
        return str(address[0]) if address else ""

    def _late(self, scope: Scope) -> RefusalError:
        if scope["method"] == "POST" and not scope.get("read"):
            return RefusalError(408, f"The body did not arrive within {self._timeout:g} s.")
        return RefusalError(
            504, f"No answer within {self._timeout:g} s; send fewer inputs per request."
        )

    def _log(self, scope: Scope, reply: Reply, counts: RequestCounts, seconds: float) -> None:
        # The requested path may contain anything; the route's own is safe to log.
        route = getattr(scope.get("route"), "path", None) or "other"
        status = reply.status or NO_REPLY
        self._metrics.requests.labels(route, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if status >= 400:
            self._metrics.refusals.labels(status).inc()
        if counts.truncated:
            self._metrics.truncated.inc(counts.truncated)
        if counts.windowed:
            self._metrics.windowed.inc(counts.windowed)
        fields: dict[str, Any] = {"method": scope["method"], "route": route, "status": status}
        log("request", id=reply.id, **fields, seconds=round(seconds, 6), **asdict(counts))


def host_name(host: str) -> str:
    """The name or address of a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0][1:].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


class Presence:
    """Ends the work for a request when its client leaves, so that nothing is encoded for nobody."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None
        self._left = False

    async def __aenter__(self) -> Presence:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if self._watch is not None:
            self._watch.cancel()
        if self._left and kind is asyncio.CancelledError:
            return self._task.uncancel() == 0
        return False

    async def receive(self) -> Message:
        """The next message; after the last of a body, the client is watched."""
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self._watch = asyncio.create_task(self._wait())
        return message

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._left = True
        self._task.cancel()


class Reply:
    """Sends an answer: adds the id and what was done with long inputs, remembers the status."""

    def __init__(self, send: Send, *, id_: str, gate: Gate, counts: RequestCounts) -> None:
        self._send = send
        self._gate = gate
        self._counts = counts
        self.id = id_
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", self.id.encode())]
            for name in ("truncated", "windowed"):
                if count := getattr(self._counts, name):
                    header = f"x-tercet-{name}".encode(), str(count).encode()
                    message["headers"].append(header)
            if self._gate.draining:
                message["headers"].append(CLOSE)
        await self._send(message)

    async def refuse(self, scope: Scope, receive: Receive, refusal: RefusalError) -> None:
        """Send a refusal, unless an answer has already started."""
        if self.status is None:
            await refusal.response(scope["path"])(scope, receive, self)
