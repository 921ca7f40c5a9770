"""A moving average of the weights, which is often better than the last weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

_MOMENT = "average"


class Average:
    """An exponential moving average of all weights that a stage trains.

    It is kept with the optimiser's moments, so that checkpoints contain it.
    """

    def __init__(self, optimiser: torch.optim.Optimizer, *, decay: float) -> None:
        self._optimiser = optimiser
        self._decay = decay

    def update(self, *, step: int) -> None:
        """After step `step` (from 0) of the stage; the first steps count for little."""
        decay = min(self._decay, (1 + step) / (10 + step))
        for weight, moments in self._optimiser.state.items():
            if moments and _MOMENT not in moments:
                moments[_MOMENT] = weight.detach().clone()
        weights, averages = self._pairs()
        if weights:
            move = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
            move(averages, weights, None)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the averages replace the weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for weight, average in zip(*self._pairs(), strict=True):
            own = weight.clone()
            # In place: captured graphs know a weight by its address.
            weight.copy_(average)
            average.copy_(own)

    def leave(self) -> None:
        """The averages become the weights."""
        for weight, average in zip(*self._pairs(), strict=True):
            weight.copy_(average)

    def _pairs(self) -> tuple[list[Tensor], list[Tensor]]:
        """The weights that have changed, and their averages."""
        state = self._optimiser.state
        changed = [weight for weight, moments in state.items() if _MOMENT in moments]
        return [weight.detach() for weight in changed], [state[w][_MOMENT] for w in changed]
