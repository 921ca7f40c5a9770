"""One worker: the model behind uvicorn, signals, draining and shutdown."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.types import ASGIApp

from tercet.errors import TercetError, install_hint
from tercet.model import Model, load
from tercet.serve.app import build_app
from tercet.serve.batcher import Batcher
from tercet.serve.connection import Connection
from tercet.serve.encode import encode
from tercet.serve.gate import Gate
from tercet.serve.keys import Keys
from tercet.serve.logs import log, log_failure, take_over_runner_logs
from tercet.serve.metrics import Metrics
from tercet.serve.service import Service
from tercet.serve.settings import Limits, Settings

if TYPE_CHECKING:
    from tercet.search.index import Index

IDLE = 30
"""Seconds that a connection may stay open between two requests."""
GRACE = 1.0
"""Seconds of draining during which open connections get a 503 instead of being closed."""
SWITCH_SECONDS = 0.0005
"""Seconds after which the encoder's thread yields the interpreter to the event loop."""
WARM_UP = "The first text is slow: weights are mapped and threads started."


@dataclass(frozen=True, slots=True)
class Ready:
    """What workers share: checked settings, keys and the loaded model."""

    settings: Settings
    keys: Keys
    model: Model


def prepare(settings: Settings) -> Ready:
    """Load the model and check the settings against it."""
    keys = Keys(file=settings.keys, listed=settings.listed_keys)
    model = load(settings.model)
    limits_for(model, settings)
    return Ready(settings, keys, model)


def serve(ready: Ready, listener: socket.socket) -> int:
    """Serve until a signal arrives. Returns the exit code.

    listener: a bound socket, which other workers may share
    """
    settings, keys, model = ready.settings, ready.keys, ready.model
    sys.setswitchinterval(SWITCH_SECONDS)
    index = open_index(settings.index, model) if settings.index is not None else None
    limits = limits_for(model, settings)
    # Inputs are cut at the limit, even if the model itself reads more.
    model.info = model.info.model_copy(update={"max_tokens": limits.tokens})
    model.embed([WARM_UP])
    metrics = Metrics()
    batcher = Batcher(partial(encode, model.engine), limits, metrics)
    service = Service(model, limits, batcher)
    app, gate = build_app(service, index, keys=keys, metrics=metrics, origins=settings.origins)

    def reload() -> None:
        keys.reload()
        if index is not None:
            index.refresh()

    # Loaded objects are permanent: scanning them for garbage would halt all requests for 0.1 s.
    gc.freeze()
    greeting = {"url": _url(listener), "model": model.name}
    server = Server(app, gate=gate, batcher=batcher, greeting=greeting, on_hangup=reload)
    server.run(sockets=[listener])
    log("ended", failed=batcher.dead)
    return 1 if batcher.dead else 0


def open_index(folder: Path, model: Model) -> Index:
    """The index; raises if another model made its vectors."""
    try:
        from tercet.search.index import Index
    except ModuleNotFoundError as error:
        raise TercetError(f"An index needs Lance: {install_hint('search')}.") from error
    return Index.open(folder, model)


def limits_for(model: Model, settings: Settings) -> Limits:
    """The limits of the settings, with defaults by the model."""
    model_tokens = model.info.max_tokens
    limits = Limits(
        inputs=settings.max_inputs,
        tokens=settings.max_tokens or model_tokens,
        body=settings.max_body,
        long_inputs=settings.long_inputs,
        queue_inputs=settings.queue_inputs,
        queue_tokens=settings.queue_tokens,
        batch_tokens=settings.batch_tokens or model.engine.batch_tokens,
        wait=settings.max_wait,
        timeout=settings.timeout,
    )
    limits.check(model_tokens=model_tokens)
    return limits


class Server(uvicorn.Server):
    """uvicorn's server: drains on SIGTERM, reloads on SIGHUP, ends with the encoder."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        gate: Gate,
        batcher: Batcher,
        greeting: dict[str, str],
        on_hangup: Callable[[], None],
    ) -> None:
        """greeting: the fields of the log line once the server is ready"""
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE,
        )
        super().__init__(config)
        self._gate = gate
        self._batcher = batcher
        self._greeting = greeting
        self._on_hangup = on_hangup
        take_over_runner_logs()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        log("ready", **self._greeting)

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._batcher.dead

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, answer accepted requests, and close."""
        self._gate.draining = True
        log("draining", connections=len(self.server_state.connections))
        for server in self.servers:
            server.close()
        # A request may be in transit on any open connection: it gets a 503.
        end = time.monotonic() + GRACE
        while self.server_state.connections and time.monotonic() < end:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    def _end(self) -> None:
        self.should_exit = True

    def _reload(self) -> None:
        """A file that cannot be read must not end a running server."""
        try:
            self._on_hangup()
            log("reloaded")
        except TercetError as error:
            log_failure("not-reloaded", error)


def _url(listener: socket.socket) -> str:
    address: Any = listener.getsockname()
    host = f"[{address[0]}]" if listener.family == socket.AF_INET6 else address[0]
    return f"http://{host}:{address[1]}"
