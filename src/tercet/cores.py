"""The cores of this machine, and how many threads a process uses."""

from __future__ import annotations

import os
import platform
import re
import sys
import threading
from functools import cache
from pathlib import Path

THREADS = "OMP_NUM_THREADS"
"""The environment variable from which torch reads its number of threads on import."""

SPINS, POLICY = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"
"""How long OpenMP's threads spin before they sleep; torch reads it on import."""
BRIEF_SPINS = 1_000
"""Longer than most pauses between two operators, shorter than another process's turn on a core."""

NICENESS = 5


def threads() -> int:
    """Cores that this process may use; OMP_NUM_THREADS lowers it, as it does for torch."""
    value = os.environ.get(THREADS, "")
    return int(value) if value.isdecimal() and int(value) else _cores()


def spin_briefly() -> None:
    """Let threads that wait for others sleep soon, unless the user says otherwise.

    By default they spin for milliseconds: beside another process they then hold the core that the
    thread they wait for could have. To be called before torch is imported.
    """
    if POLICY not in os.environ:
        os.environ.setdefault(SPINS, str(BRIEF_SPINS))


def share(processes: int) -> int:
    """Threads for each of several processes that run in parallel.

    If each used all cores, threads would wait for others that have none: two trainings on two cores
    are then less than half as fast together as one alone.
    """
    return max(1, _cores() // processes)


def shared_environment(processes: int) -> dict[str, str]:
    """The environment for each of several parallel processes; the user's own setting wins."""
    if processes == 1:
        return dict(os.environ)
    return {THREADS: str(share(processes))} | os.environ


def give_way() -> None:
    """Let other threads go first where cores are few; on Linux, where threads have priorities."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        # A process that was started as nicer stays so: it may not take that back.
        niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, niceness)


@cache
def amd_family() -> int | None:
    """The family of this machine's CPU if it is AMD's: 25 is Zen 3 and 4, 26 is Zen 5."""
    info = Path("/proc/cpuinfo")
    found = info.read_text("utf-8", "replace") if info.exists() else platform.processor()
    family = re.search(r"\bfamily\s*:?\s*([0-9]{1,4})\b", found, re.IGNORECASE)
    return int(family[1]) if family and "AuthenticAMD" in found else None


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1
