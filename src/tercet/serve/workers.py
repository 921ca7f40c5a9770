"""Several workers behind one socket, forked from a process that has loaded the model.

All read one copy of the weights in memory; none writes to it. The parent loads on one thread and
starts no others, so that a fork loses nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

from tercet.cores import THREADS, share
from tercet.errors import TercetError
from tercet.serve.accepting import Occupancy
from tercet.serve.logs import log

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
ERROR = 2
PAUSE = 1.0
"""Seconds from the start of a worker to that of its replacement, if it dies early, and between
checks that the parent lives."""
GLANCE = 0.02
"""Seconds between two looks of the parent at its workers and at what SIGHUP asks for."""


def _signals() -> tuple[signal.Signals, ...]:
    """Those that are passed on; a constant could not be imported on Windows."""
    return signal.SIGTERM, signal.SIGINT, signal.SIGHUP


def bind(host: str, port: int) -> socket.socket:
    """The socket that all workers accept from."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP is named explicitly: otherwise asyncio does not set TCP_NODELAY, and the body of each
    # answer waits until the client acknowledges its head, up to 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or error
        raise TercetError(f"{host} port {port}: cannot listen: {reason}.") from error
    bound.setblocking(False)
    return bound


@dataclass(frozen=True, slots=True)
class Worker:
    """place: among all workers, the same as that of the one it replaces"""

    place: int
    began: float = field(default_factory=time.monotonic)


class Workers:
    """Starts workers, passes signals on to them, and replaces those that die.

    Created before torch and the metrics are imported, which read the environment then.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads_set = THREADS in os.environ
        os.environ.setdefault(THREADS, "1")
        # Where workers share their metrics, so that any of them can report all.
        os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="tercet-metrics-")
        self.occupancy = Occupancy(count)
        self._alive: dict[int, Worker] = {}
        self._ending = False
        self._stale = False
        self._refresh: Callable[[], None] = lambda: None
        self.code = 0
        """The exit code of the parent."""

    def split(self, refresh: Callable[[], None]) -> bool:
        """True in each worker. In the parent it returns False once all workers have ended.

        refresh: reads again in the parent what workers are forked with, after SIGHUP
        """
        self._refresh = refresh
        for number in _signals():
            signal.signal(number, self._pass_on)
        if any(self._fork(place) for place in range(self._count)) or self._watch():
            return True
        shutil.rmtree(os.environ[SHARED_FOLDER], ignore_errors=True)
        return False

    def _fork(self, place: int) -> bool:
        """True in the worker, which starts with SIGHUP blocked: it must not end by one that comes
        before it can reload."""
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        self._refresh_if_stale()
        pid = os.fork()
        if pid:
            self._alive[pid] = Worker(place)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            return False
        self.occupancy.place = place
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
        for number in _signals():
            signal.signal(number, signal.SIG_DFL)
        if not self._threads_set:
            self._take_cores()
        return True

    def _take_cores(self) -> None:
        """Use this worker's share of the cores."""
        cores = share(self._count)
        os.environ[THREADS] = str(cores)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(cores)

    def _watch(self) -> bool:
        """Wait for workers to end; True in a worker that replaces a dead one."""
        while self._alive:
            self._refresh_if_stale()
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid not in self._alive:
                time.sleep(GLANCE)
                continue
            worker = self._alive.pop(pid)
            self.occupancy.leave(worker.place)
            code = os.waitstatus_to_exitcode(status)
            if code == ERROR:
                self._end()
            if self._ending:
                self.code = self.code or abs(code)
                continue
            log("worker-died", worker=pid, code=code)
            self._forget(pid)
            # One that dies as it starts would otherwise be started without end.
            time.sleep(max(worker.began + PAUSE - time.monotonic(), 0.0))
            if not self._ending and self._fork(worker.place):
                return True
        return False

    def _forget(self, pid: int) -> None:
        """Remove the queue of a dead worker from the metrics."""
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]

    def _refresh_if_stale(self) -> None:
        """Read again what SIGHUP asked for, so that later workers have it too."""
        if self._stale and not self._ending:
            self._stale = False
            self._refresh()

    def _end(self) -> None:
        self._ending = True
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for pid in list(self._alive):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, number)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._stale = True
            self._send(number)
        else:
            self._end()


def _end_with(parent: int) -> None:
    """Drain as on SIGTERM when the parent is gone: nothing else would end this worker, nor remove
    the folder of metrics, whose files stay open in the workers that still drain."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
    shutil.rmtree(os.environ[SHARED_FOLDER], ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
