"""Several workers behind one socket; the weights that each maps are in memory once.

Workers are forked before anything large is imported. Each maps the same weight files, whose pages
the system shares among them. This file imports nothing large for that reason.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from types import FrameType

from tercet.errors import TercetError
from tercet.serve.logs import log

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PAUSE = 1.0
"""Seconds before a worker that died is replaced."""


def bind(host: str, port: int) -> socket.socket:
    """The socket that all workers accept from."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
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
    """Starts workers, passes signals on to them, and replaces those that die."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._alive: set[int] = set()
        self._ending = False
        self._pipe = -1
        self.code = 0
        """How the parent is to exit."""

    def split(self) -> bool:
        """True in each worker. In the parent it returns False once all workers have ended."""
        # Set before the metrics are imported: where workers leave their figures for each other.
        folder = os.environ[SHARED_FOLDER] = tempfile.mkdtemp(prefix="tercet-metrics-")
        for number in SIGNALS:
            signal.signal(number, self._pass_on)
        if self._start_all() or self._watch():
            return True
        shutil.rmtree(folder, ignore_errors=True)
        return False

    def tell_ready(self) -> None:
        """Called in a worker that serves."""
        os.write(self._pipe, b".")
        os.close(self._pipe)

    def _start_all(self) -> bool:
        """True in a worker; the second starts when the first serves, so one mistake is told once"""
        return any(not self._ending and self._fork() for _ in range(self._count))

    def _fork(self) -> bool:
        """True in the worker; False in the parent, once the worker serves or has ended."""
        heard, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(heard)
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            self._pipe = told
            return True
        os.close(told)
        self._alive.add(pid)
        with os.fdopen(heard, "rb") as pipe:
            if not pipe.read(1):
                self._end()
        return False

    def _watch(self) -> bool:
        """Wait for workers to end; True in a worker that takes the place of one that died."""
        while self._alive:
            pid, status = os.wait()
            self._alive.discard(pid)
            code = os.waitstatus_to_exitcode(status)
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
