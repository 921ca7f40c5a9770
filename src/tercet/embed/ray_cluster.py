"""A Ray cluster to work on, quiet, and with mistakes told as if they had happened here."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from tercet.errors import TercetError

SECONDS = 10.0


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """A cluster to work on: the one at the address, or one of this machine alone.

    What went wrong in any of its processes is raised here as the mistake that it was.
    """
    ray = import_ray()
    if address is not None:
        _knock(address)
    try:
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            logging_level="ERROR",
            log_to_driver=False,
            configure_logging=True,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise TercetError(f"--address {address}: no Ray cluster answers ({reason}).") from error
    try:
        # Ray tells of nodes that die on stdout, which is for results.
        with redirect_stdout(sys.stderr):
            yield
    except ray.exceptions.RayError as error:
        raise _mistake(error) from error
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Find out at once whether anybody is there; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise TercetError(f"--address {address}: give HOST:PORT of a Ray cluster.")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except (OSError, OverflowError) as error:
        raise TercetError(f"--address {address}: no Ray cluster answers ({error}).") from error


def import_ray() -> Any:
    """The module `ray`, which is an extra."""
    # Neither statistics nor anything else leaves the machine unless somebody asks for it.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray tells its users of much that it settles by itself.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise TercetError("--engine ray needs Ray: pip install 'tercet[ray,search]'.") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray


def _mistake(error: BaseException) -> TercetError:
    """The mistake that lies beneath what Ray wrapped around it."""
    seen = error
    while (inner := getattr(seen, "cause", None) or seen.__cause__) is not None:
        seen = inner
    if isinstance(seen, TercetError):
        return TercetError(str(seen))
    return TercetError(f"Ray gave up: {type(seen).__name__}: {str(seen).strip()}")
