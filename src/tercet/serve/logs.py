"""Logs: JSON lines on stderr with ids and timings; never a text, a key or a header."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any

RUNNER = "uvicorn.error"


def log(event: str, **facts: Any) -> None:
    """One line. Facts are ours (numbers, names of routes), never what a client sent."""
    moment = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    line = {"time": f"{stamp}.{int(moment * 1000) % 1000:03d}Z", "event": event, **facts}
    sys.stderr.write(json.dumps(line) + "\n")


def log_failure(event: str, error: BaseException, **facts: Any) -> None:
    """A failure of ours: its kind and where it arose, not its message, which may hold a text."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-6:]]
    log(event, error=type(error).__name__, at=places, **facts)


class RunnerLines(logging.Handler):
    """What uvicorn reports, as lines like ours; of its failures only where they arose."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            log_failure("runner", record.exc_info[1])
        else:
            log(
                "runner", level=record.levelname.lower(), message=str(record.msg).partition("\n")[0]
            )


def take_over_runner_logs() -> None:
    """Let uvicorn and asyncio speak through us; they tell only what is worth a warning."""
    for name in (RUNNER, "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers = [RunnerLines()]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
