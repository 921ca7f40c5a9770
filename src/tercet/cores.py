"""The cores of this machine, and how many threads a process takes of them."""

from __future__ import annotations

import os

THREADS = "OMP_NUM_THREADS"
"""The variable that torch reads its number of threads from, when it is imported."""


def threads() -> int:
    """Cores that this process may use; OMP_NUM_THREADS lowers it, as it does for torch."""
    said = os.environ.get(THREADS, "")
    return int(said) if said.isdecimal() and int(said) else _cores()


def share(processes: int) -> int:
    """Threads for each of several processes that run at once.

    With all cores for each, threads wait for others that have no core: two trainings on two cores
    are then less than half as fast together as one alone.
    """
    return max(1, _cores() // processes)


def shared_environment(processes: int) -> dict[str, str]:
    """The environment for each of several processes at once; what the user has set there stays."""
    if processes == 1:
        return dict(os.environ)
    return {THREADS: str(share(processes))} | os.environ


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1
