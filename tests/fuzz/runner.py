"""Runs commands in forked processes with limits on memory and time; one JSON line in and out each.

Imports are done once, before the forks.
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
"""Bytes that a command may take beyond what the imports take."""


def run(arguments: list[str], folder: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        out, err = Path(scratch) / "out", Path(scratch) / "err"
        began = time.monotonic()
        child = os.fork()
        if not child:
            run_here(arguments, folder, out, err)
        _, status, used = os.wait4(child, 0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": out.read_text("utf-8", "replace") if out.exists() else "",
            "err": err.read_text("utf-8", "replace") if err.exists() else "",
            "seconds": time.monotonic() - began,
            "bytes": used.ru_maxrss * 1024,
        }


def run_here(arguments: list[str], folder: str, out: Path, err: Path) -> None:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(folder)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    signal.alarm(SECONDS)
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
    os._exit(code)


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

    for line in sys.stdin:
        case = json.loads(line)
        print(json.dumps(run(case["arguments"], case["folder"])), flush=True)
