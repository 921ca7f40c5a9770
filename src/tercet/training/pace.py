"""How far a process may run ahead of its GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import torch

_STEPS_AHEAD = 2


class Mark(Protocol):
    """A point in the queue of a GPU."""

    def synchronize(self) -> object:
        """Wait until the GPU is past it."""


class Pace:
    """Lets a process queue two steps and then sleep.

    Without it a process queues steps until the driver is full and then spins, which costs a core.
    """

    def __init__(self, mark: Callable[[], Mark] | None) -> None:
        """`mark` marks the end of the queue; None where steps are not queued."""
        self._mark = mark
        self._marks: deque[Mark] = deque()

    @classmethod
    def on(cls, device: torch.device) -> Pace:
        return cls(_event if device.type == "cuda" else None)

    def step(self) -> None:
        """After queueing a step: wait until at most two are left."""
        if self._mark is None:
            return
        self._marks.append(self._mark())
        if len(self._marks) > _STEPS_AHEAD:
            self._marks.popleft().synchronize()


def _event() -> torch.cuda.Event:
    event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
