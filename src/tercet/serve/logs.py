"""Logs: JSON lines on stderr with ids and times, never with texts, keys or headers."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any

RUNNER = "uvicorn.error"
REPEAT_SECONDS = 10.0
"""Seconds between two log lines of the runner from the same place in its code."""


def log(event: str, **fields: Any) -> None:
    """Write one line. Fields are the server's own (counts, routes), never what a client sent."""
    moment = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    line = {"time": f"{stamp}.{int(moment * 1000) % 1000:03d}Z", "event": event, **fields}
    sys.stderr.write(json.dumps(line) + "\n")


def log_failure(event: str, error: BaseException, **fields: Any) -> None:
    """Log the type and location of an error, not its message, which may contain a text."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-6:]]
    log(event, error=type(error).__name__, at=places, **fields)


class RunnerLines(logging.Handler):
    """Logs of uvicorn as JSON lines; of its errors only the location.

    A line that repeats itself is written once in a while: asyncio logs each connection that it
    cannot accept, thousands per second when the process has no file descriptors left.
    """

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[tuple[str, int], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        place = (record.pathname, record.lineno)
        if now - self._written.get(place, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._written[place] = now
        if record.exc_info and record.exc_info[1] is not None:
            log_failure("runner", record.exc_info[1])
        else:
            log(
                "runner", level=record.levelname.lower(), message=str(record.msg).partition("\n")[0]
            )


def take_over_runner_logs() -> None:
    """Send warnings of uvicorn and asyncio to our log."""
    for name in (RUNNER, "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [RunnerLines()]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
