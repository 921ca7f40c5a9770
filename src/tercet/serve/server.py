"""One worker: the model behind uvicorn, signals, draining and shutdown."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tercet.model import Model
from tercet.serve.accepting import Acceptor, Occupancy
from tercet.serve.app import build_app
from tercet.serve.batcher import Batcher
from tercet.serve.connection import Connection
from tercet.serve.encode import encode
from tercet.serve.gate import Gate
from tercet.serve.loading import Ready
from tercet.serve.logs import log, take_over_runner_logs
from tercet.serve.metrics import Metrics
from tercet.serve.reload import Reload, make_service

IDLE = 30
"""Seconds that a connection may stay open between two requests."""
GRACE = 1.0
"""Seconds of draining during which open connections get a 503 instead of being closed."""
SAME_SIGNAL = 0.5
"""Seconds within which two signals are one: Ctrl-C reaches a worker and its parent, which passes it
on."""
SWITCH_SECONDS = 0.0005
"""Seconds after which the encoder's thread yields the interpreter to the event loop."""


def serve(ready: Ready, listener: socket.socket, occupancy: Occupancy) -> int:
    """Serve until a signal arrives. Returns the exit code.

    listener: a bound socket, which other workers may share
    occupancy: the connections of these workers
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    metrics = Metrics()
    batcher = Batcher(encode, ready.loaded.limits, metrics)
    app = build_app(
        make_service(ready, ready.loaded, batcher),
        keys=ready.keys,
        metrics=metrics,
        origins=ready.settings.origins,
        hosts=allowed_hosts(listener, ready.settings.allowed_hosts),
    )
    if not is_loopback(listener) and not ready.keys.closed:
        log("warning", reason="Other machines reach this server, and it has no keys: --keys-file.")
    # Loaded objects are permanent: scanning them for garbage would halt all requests for 0.1 s.
    gc.freeze()
    server = Server(
        app.entry,
        acceptor=Acceptor(listener, occupancy),
        gate=app.gate,
        batcher=batcher,
        timeout=ready.settings.timeout,
        greeting=_greeting(ready.loaded.model, listener),
        on_hangup=Reload(ready, app.api, batcher),
    )
    server.run()
    log("ended", failed=batcher.dead)
    return 1 if batcher.dead else 0


class Server(uvicorn.Server):
    """uvicorn's server: drains on SIGTERM, reloads on SIGHUP, ends with the encoder."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        acceptor: Acceptor,
        gate: Gate,
        batcher: Batcher,
        timeout: float,
        greeting: dict[str, Any],
        on_hangup: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        """timeout: seconds per request, and for accepted ones to end after SIGTERM
        greeting: the fields of the log line once the server is ready
        """
        config = uvicorn.Config(
            app,
            http=partial(Connection, timeout=timeout, on_close=acceptor.count),  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE,
            # Whoever has not read its answer by then has had its time.
            timeout_graceful_shutdown=math.ceil(timeout),
        )
        super().__init__(config)
        self._acceptor = acceptor
        self._gate = gate
        self._batcher = batcher
        self._greeting = greeting
        self._on_hangup = on_hangup
        self._signalled: float | None = None
        self._reloads: set[asyncio.Task[None]] = set()
        take_over_runner_logs()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        # A worker is forked with SIGHUP blocked: one that arrived while it started is handled now.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._acceptor.start(self._connection, self.server_state.connections)
        log("ready", **self._greeting)

    def _connection(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._batcher.dead

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, answer accepted requests, and close."""
        self._gate.draining = True
        log("draining", connections=len(self.server_state.connections))
        self._acceptor.stop()
        # A request may be in transit on any open connection: it gets a 503.
        end = time.monotonic() + GRACE
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.02)
        await super().shutdown()

    def _end(self) -> None:
        """Drain; a second signal ends at once."""
        now = time.monotonic()
        if self._signalled is None:
            self.should_exit, self._signalled = True, now
        elif now - self._signalled > SAME_SIGNAL:
            log("forced")
            os._exit(1)

    def _reload(self) -> None:
        """Start to reload; requests are answered meanwhile."""
        task = asyncio.ensure_future(self._on_hangup())
        # The event loop itself keeps only a weak reference.
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)


def is_loopback(listener: socket.socket) -> bool:
    """Whether only this machine can connect."""
    return ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def allowed_hosts(listener: socket.socket, names: list[str]) -> frozenset[str] | None:
    """The names in requests that a server answers to; None: any.

    On loopback, a page of another site could otherwise read the answers through the browser of a
    user (DNS rebinding). A server for a network does not know its names, unless they are given.
    """
    if not names and not is_loopback(listener):
        return None
    own = {"localhost", "127.0.0.1", "::1", listener.getsockname()[0]}
    return frozenset(own | {name.lower() for name in names})


def _greeting(model: Model, listener: socket.socket) -> dict[str, Any]:
    """The fields of the log line once the server is ready; tasks with side weights are named, since
    each costs a pass of its own."""
    greeting: dict[str, Any] = {"url": _url(listener), "model": model.name}
    return greeting | ({"side_tasks": model.info.side_tasks} if model.info.side_tasks else {})


def _url(listener: socket.socket) -> str:
    address: Any = listener.getsockname()
    host = f"[{address[0]}]" if listener.family == socket.AF_INET6 else address[0]
    return f"http://{host}:{address[1]}"
