"""Runs commands in forked processes with limits on memory and time; one JSON line in and out each.

Imports are done once, before the forks. A process runs some cases one after the other, which is
cheap; a case that is asked for as `fresh` has a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

SECONDS = 20
MEMORY = 2**31
"""Bytes that a command may take beyond what the process takes before."""
CASES = 40
"""Cases of one process; what one leaves behind must not add up."""


class Child:
    """A forked process that runs the cases that it is sent."""

    def __init__(self) -> None:
        self.cases = 0
        self._scratch = tempfile.TemporaryDirectory()
        self._files = [Path(self._scratch.name) / name for name in ("out", "err")]
        inbox, self._to = os.pipe()
        self._from, outbox = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(self._to)
            os.close(self._from)
            work(os.fdopen(inbox), os.fdopen(outbox, "w"), self._files)
        os.close(inbox)
        os.close(outbox)
        self._inbox, self._outbox = os.fdopen(self._to, "w"), os.fdopen(self._from)

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        """What a case gave; the child is gone if it died of it."""
        self.cases += 1
        began = time.monotonic()
        print(json.dumps(case), file=self._inbox, flush=True)
        line = self._outbox.readline()
        found = json.loads(line) if line else self._died()
        out, err = (file.read_text("utf-8", "replace") for file in self._files)
        return {**found, "out": out, "err": err, "seconds": time.monotonic() - began}

    def _died(self) -> dict[str, Any]:
        self.cases = CASES
        _, status, used = os.wait4(self._pid, 0)
        self._pid = 0
        return {"code": os.waitstatus_to_exitcode(status), "bytes": used.ru_maxrss * 1024}

    def end(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._inbox.close()
        self._outbox.close()
        self._scratch.cleanup()


def work(inbox: Any, outbox: Any, files: list[Path]) -> None:
    """The life of a child."""
    for stream, path in zip((1, 2), files, strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    for line in inbox:
        case = json.loads(line)
        for stream in (1, 2):
            os.ftruncate(stream, 0)
        os.chdir(case["folder"])
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory starts again
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
        signal.alarm(SECONDS)
        code = run_here(case["arguments"])
        signal.alarm(0)
        print(json.dumps({"code": code, "bytes": peak()}), file=outbox, flush=True)
    os._exit(0)


def run_here(arguments: list[str]) -> int:
    sys.argv = ["tercet", *arguments]
    code = 1
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:  # noqa: BLE001 (the fault is what the tests look for)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def peak() -> int:
    """The most bytes of memory since it was last reset."""
    status = Path("/proc/self/status").read_text("utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def answer() -> None:
    child = Child()
    for line in sys.stdin:
        case = json.loads(line)
        if case["fresh"] or child.cases >= CASES:
            child.end()
            child = Child()
        print(json.dumps(child.run(case)), flush=True)
    child.end()


if __name__ == "__main__":
    import lance  # noqa: F401
    import onnxruntime  # noqa: F401
    import torch._dynamo  # noqa: F401 (an optimiser imports it, which takes seconds)

    import tercet.cli.predict
    import tercet.cli.search
    import tercet.cli.train
    import tercet.search.index
    import tercet.training.run  # noqa: F401
    from tercet.cli.app import main

    answer()
