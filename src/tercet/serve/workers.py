"""Several workers behind one socket, forked from a process that has loaded the model.

All of them read the one copy of the weights that lies in memory; none writes to it. The parent
loads on one thread and starts none of its own, so that nothing is lost in a fork.
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
MISTAKE = 2
PAUSE = 1.0
"""Seconds before a worker that died is replaced, and between looks whether the parent lives."""


def bind(host: str, port: int) -> socket.socket:
    """The socket that all workers accept from."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, or asyncio would not know it for TCP, and the body of each answer would be held back
    # until the client has acknowledged its head, which takes it up to 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        reason = getattr(error, "strerror", None) or error
        raise TercetError(f"{host} port {port}: cannot be listened on: {reason}.") from error
    bound.setblocking(False)
    return bound


class Workers:
    """Starts workers, passes signals on to them, and replaces those that die.

    Made before anything large is imported: torch and the metrics read the environment then.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads_given = THREADS in os.environ
        os.environ.setdefault(THREADS, "1")
        # Where workers leave their figures for whichever of them is asked.
        os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="tercet-metrics-")
        self._alive: set[int] = set()
        self._ending = False
        self.code = 0
        """How the parent is to exit."""

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
        if not self._threads_given:
            self._take_cores()
        return True

    def _take_cores(self) -> None:
        """As many threads as there are cores for each worker."""
        cores = share(self._count)
        os.environ[THREADS] = str(cores)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(cores)

    def _watch(self) -> bool:
        """Wait for workers to end; True in a worker that takes the place of one that died."""
        while self._alive:
            pid, status = os.wait()
            self._alive.discard(pid)
            code = os.waitstatus_to_exitcode(status)
            if code == MISTAKE:
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
        """Take the queue of a dead worker out of the figures."""
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
    """Drain as on SIGTERM when the parent is gone: nobody else would ever end this worker."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
    os.kill(os.getpid(), signal.SIGTERM)
