"""The end of a step: clip the gradient and update the weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from tercet.network.network import Network
from tercet.specs import OptimiserSpec
from tercet.training.gradients import GradientRows
from tercet.training.parts import build_optimiser, set_rate

# The first steps allocate the optimiser's moments, which a graph cannot.
_STEPS_BEFORE_CAPTURE = 2


class Update:
    """Clip, step, and follow-up; on a GPU replayed as a CUDA graph."""

    def __init__(
        self,
        network: Network,
        spec: OptimiserSpec,
        *,
        rows: GradientRows,
        after: Callable[[], None] | None,
    ) -> None:
        """Call `choose_trainable` first; `after` is called after every step."""
        self.optimiser = build_optimiser(network, spec)
        self._clip = spec.clip
        self._rows = rows
        self._after = after
        self._replays = network.device.type == "cuda"
        self._done: dict[Hashable, int] = {}
        self._captured: dict[Hashable, tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def __call__(self, *, factor: float, tasks: Hashable) -> Tensor:
        """Update the weights at `factor` of the peak rates; the gradient's norm before clipping.

        tasks: those of the gradient; the heads of others are not updated
        """
        set_rate(self.optimiser, factor)
        if not self._replays:
            return self._update()
        if tasks not in self._captured:
            self._done[tasks] = self._done.get(tasks, 0) + 1
            if self._done[tasks] <= _STEPS_BEFORE_CAPTURE:
                return self._update()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                norm = self._update()
            self._captured[tasks] = graph, norm
        graph, norm = self._captured[tasks]
        graph.replay()
        return norm.clone()

    def _update(self) -> Tensor:
        norm = self._rows.clip(self._clip)
        self.optimiser.step()
        if self._after is not None:
            self._after()
        return norm
