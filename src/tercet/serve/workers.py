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
from types import FrameType

from tercet.cores import THREADS, share
from tercet.errors import TercetError
from tercet.serve.logs import log

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ERROR = 2
PAUSE = 1.0
"""Seconds before a dead worker is replaced, and between checks that the parent lives."""


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
        self._alive: set[int] = set()
        self._ending = False
        self.code = 0
        """The exit code of the parent."""

    def split(self) -> bool:
        """True in each worker. In the parent it returns False once all workers have ended."""
        for number in SIGNALS:
            signal.signal(number, self._pass_on)
        if any(self._fork() for _ in range(self._count)) or self._watch():
            return True
        shutil.rmtree(os.environ[SHARED_FOLDER], ignore_errors=True)
        return False

    def _fork(self) -> bool:
        """True in the worker."""
        parent = os.getpid()
        pid = os.fork()
        if pid:
            self._alive.add(pid)
            return False
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()
        for number in SIGNALS:
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
            pid, status = os.wait()
            self._alive.discard(pid)
            code = os.waitstatus_to_exitcode(status)
            if code == ERROR:
                self._end()
            if self._ending:
                self.code = self.code or abs(code)
                continue
            log("worker-died", worker=pid, code=code)
            self._forget(pid)
            time.sleep(PAUSE)
            if not self._ending and self._fork():
                return True
        return False

    def _forget(self, pid: int) -> None:
        """Remove the queue of a dead worker from the metrics."""
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]

    def _end(self) -> None:
        self._ending = True
        for pid in self._alive:
            os.kill(pid, signal.SIGTERM)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGHUP:
            for pid in self._alive:
                os.kill(pid, number)
        else:
            self._end()


def _end_with(parent: int) -> None:
    """Drain as on SIGTERM when the parent is gone: nothing else would end this worker."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os.kill(os.getpid(), signal.SIGTERM)
