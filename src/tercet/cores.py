"""The cores of this machine, and how many threads a process uses."""

from __future__ import annotations

import os
import sys
import threading

THREADS = "OMP_NUM_THREADS"
"""The environment variable from which torch reads its number of threads on import."""

NICENESS = 5


def threads() -> int:
    """Cores that this process may use; OMP_NUM_THREADS lowers it, as it does for torch."""
    value = os.environ.get(THREADS, "")
    return int(value) if value.isdecimal() and int(value) else _cores()


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
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1
