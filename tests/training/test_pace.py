from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tercet.training.pace import Pace


class Gpu:
    """Does queued steps only when it is waited for."""

    def __init__(self) -> None:
        self.queued = 0
        self.done = 0

    def mark(self) -> Mark:
        return Mark(self, self.queued)


class Mark:
    def __init__(self, gpu: Gpu, place: int) -> None:
        self.gpu = gpu
        self.place = place

    def synchronize(self) -> None:
        self.gpu.done = max(self.gpu.done, self.place)


@given(st.integers(1, 40))
def test_never_more_than_two_steps_are_queued_and_the_last_ones_are_not_waited_for(
    steps: int,
) -> None:
    gpu = Gpu()
    pace = Pace(gpu.mark)
    for _ in range(steps):
        gpu.queued += 1
        pace.step()
        assert gpu.queued - gpu.done == min(gpu.queued, 2)


def test_a_cpu_has_no_queue() -> None:
    pace = Pace.on(torch.device("cpu"))
    for _ in range(5):
        pace.step()
