"""A connection to a Ray cluster, whose errors are raised as if they had occurred here."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from tercet.errors import ArgumentError, TercetError, install_hint

SECONDS = 10.0


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """A cluster: the one at the address, or a new one on this machine.

    An error in any of its processes is raised here.
    """
    ray = import_ray()
    if address is not None:
        _check_reachable(address)
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
        raise _no_cluster(address, reason) from error
    try:
        # Ray reports nodes that die on stdout, which is for results.
        with redirect_stdout(sys.stderr):
            yield
    except ray.exceptions.RayError as error:
        raise _root_cause(error) from error
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Fail fast if nothing listens there; Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ArgumentError(f"`address` {address}: give HOST:PORT of a Ray cluster.", "address")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str | None, reason: object) -> ArgumentError:
    return ArgumentError(f"`address` {address}: no Ray cluster answers ({reason}).", "address")


def import_ray() -> Any:
    """The module `ray`, which is an extra."""
    # Usage statistics do not leave the machine unless the user turns them on.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray logs much that it settles by itself.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise TercetError(f"The Ray engine needs Ray: {install_hint('ray,search')}.") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray


def _root_cause(error: BaseException) -> TercetError:
    """The error inside Ray's wrappers."""
    cause = error
    while (inner := getattr(cause, "cause", None) or cause.__cause__) is not None:
        cause = inner
    if isinstance(cause, TercetError):
        return TercetError(str(cause))
    return TercetError(f"Ray failed: {type(cause).__name__}: {str(cause).strip()}")
