"""The socket that workers share, and how they share out its connections."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from tercet.serve.accepting import GONE, Acceptor, Occupancy
from tercet.serve.connection import Connection
from tercet.serve.workers import bind


class Idle(asyncio.Transport):
    """A connection from before."""

    def close(self) -> None:
        pass


class Kept(asyncio.Protocol):
    """A connection that stays open, and remembers its transport."""

    def __init__(self, opened: list[Any]) -> None:
        self._opened = opened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._opened.append(transport)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with bind("127.0.0.1", 0) as bound:
        yield bound


def occupancies(count: int) -> list[Occupancy]:
    """What each of several workers sees, as if they were forked."""
    shared = Occupancy(count)
    workers = []
    for place in range(count):
        worker = Occupancy(1)
        worker._counts, worker.place = shared._counts, place
        workers.append(worker)
    return workers


def test_answers_are_sent_at_once(listener: socket.socket) -> None:
    async def ask() -> bool:
        opened: list[asyncio.BaseTransport] = []
        acceptor = Acceptor(listener, Occupancy(1))
        acceptor.start(lambda: Kept(opened), opened)
        _, client = await asyncio.open_connection(*listener.getsockname())
        while not opened:
            await asyncio.sleep(0.01)
        connection = opened[0].get_extra_info("socket")
        immediate = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        opened[0].close()
        client.close()
        acceptor.stop()
        return bool(immediate)

    assert asyncio.run(ask())


def test_the_worker_with_fewer_connections_accepts_more(listener: socket.socket) -> None:
    async def connect() -> list[int]:
        acceptors = [Acceptor(listener.dup(), occupancy) for occupancy in occupancies(2)]
        opened: list[list[asyncio.BaseTransport]] = [[Idle() for _ in range(12)], []]
        for acceptor, own in zip(acceptors, opened, strict=True):
            acceptor.start(partial(Kept, own), own)
        address = listener.getsockname()
        clients = await asyncio.gather(*(asyncio.open_connection(*address) for _ in range(20)))
        while sum(map(len, opened)) < 12 + len(clients):
            await asyncio.sleep(0.01)
        counts = [acceptor.occupancy.count for acceptor in acceptors]
        assert counts == [len(own) for own in opened]
        for transport in [*opened[0], *opened[1], *(writer for _, writer in clients)]:
            transport.close()
        for acceptor in acceptors:
            acceptor.stop()
        return counts

    first, second = asyncio.run(connect())
    assert first + second == 32
    assert abs(first - second) <= 4  # 12 if both accept alike


def test_a_worker_that_does_not_accept_delays_its_share_only_a_moment(
    listener: socket.socket,
) -> None:
    async def connect() -> int:
        opened: list[asyncio.BaseTransport] = [Idle() for _ in range(5)]
        busy, stuck = occupancies(2)
        acceptor = Acceptor(listener, busy)
        acceptor.start(lambda: Kept(opened), opened)
        stuck.count = 0
        address = listener.getsockname()
        clients = await asyncio.gather(*(asyncio.open_connection(*address) for _ in range(4)))
        async with asyncio.timeout(30):
            while len(opened) < 5 + len(clients):
                await asyncio.sleep(0.01)
        for transport in [*opened, *(writer for _, writer in clients)]:
            transport.close()
        acceptor.stop()
        acceptor.count()  # as when a connection closes while the worker drains
        return busy.count

    assert asyncio.run(connect()) == GONE


def test_a_connection_that_closes_is_no_longer_counted() -> None:
    async def close() -> list[int]:
        state, counts = ServerState(), []
        connection = Connection(
            config=uvicorn.Config(FastAPI(), ws="none", lifespan="off"),
            server_state=state,
            app_state={},
            on_close=lambda: counts.append(len(state.connections)),
        )
        connection.connection_made(Idle())
        assert len(state.connections) == 1
        connection.connection_lost(None)
        return counts

    assert asyncio.run(close()) == [0]


def test_without_file_descriptors_a_worker_tries_again(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Exhausted(socket.socket):
        failures = 2

        def accept(self) -> Any:
            if self.failures:
                self.failures -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    async def connect() -> int:
        opened: list[asyncio.BaseTransport] = []
        exhausted = Exhausted(fileno=listener.dup().detach())
        acceptor = Acceptor(exhausted, Occupancy(1))
        acceptor.start(lambda: Kept(opened), opened)
        _, client = await asyncio.open_connection(*listener.getsockname())
        async with asyncio.timeout(30):
            while not opened:
                await asyncio.sleep(0.01)
        opened[0].close()
        client.close()
        acceptor.stop()
        return len(opened)

    monkeypatch.setattr("tercet.serve.accepting.RETRY_SECONDS", 0.05)
    assert asyncio.run(connect()) == 1
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["reason"]) for line in lines] == [
        ("not-accepting", "Too many open files")
    ] * 2


REPLACED = """
import os, sys, time
from tercet.serve import workers
pause, lives = float(sys.argv[1]), float(sys.argv[2])
workers.PAUSE = pause
sleep, forks, parent = time.sleep, 0, os.getpid()

def log_sleep(seconds):
    if os.getpid() == parent and seconds != workers.GLANCE:
        print(seconds, flush=True)
        seconds = 0.0
    sleep(seconds)

class Once(workers.Workers):
    def _fork(self, place):
        global forks
        forks += 1
        return super()._fork(place)

time.sleep = log_sleep
all_workers = Once(1)
if all_workers.split(lambda: None):
    if forks == 2:
        os._exit(workers.ERROR)  # ends the parent too
    sleep(lives)
    os._exit(1)
"""


@pytest.mark.parametrize(("pause", "lives"), [(0.2, 0.5), (1000.0, 0.0)])
def test_a_worker_is_replaced_at_once_unless_it_dies_as_it_starts(
    pause: float, lives: float
) -> None:
    command = [sys.executable, "-c", REPLACED, str(pause), str(lives)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.stderr.count("worker-died") == 1, found.stderr
    (waited,) = map(float, found.stdout.split())
    assert waited == 0.0 if lives > pause else waited > pause / 2
