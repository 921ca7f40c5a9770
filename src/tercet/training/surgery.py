"""Gradient surgery: the weights with which the tasks' gradients are summed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tercet.errors import TercetError, install_hint
from tercet.specs.registry import resolve
from tercet.specs.surgeries import SURGERIES


class GradientSurgery:
    """One algorithm in a stage; some remember earlier steps."""

    def __init__(self, kind: str) -> None:
        try:
            self._weighting: nn.Module = resolve(SURGERIES[kind].implementation)()
        except ImportError as error:
            raise TercetError(
                f"surgery {kind!r} needs further packages: {install_hint('surgery')}."
            ) from error

    def weights(self, gramian: Tensor) -> Tensor:
        """Gram matrix of the tasks' gradients [tasks, tasks] to weights [tasks]."""
        weights: Tensor = self._weighting(gramian)
        return weights

    def state(self) -> dict[str, Tensor]:
        """What it remembers."""
        return dict(self._weighting.state_dict())

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from the state of another."""
        if state:
            tasks = next(iter(state.values())).shape[0]
            # The memory takes its shape at the first call.
            self.weights(torch.eye(tasks))
            self._weighting.load_state_dict(dict(state))


def cosines(gramian: Tensor) -> Tensor:
    """Cosines between the tasks' gradients, [tasks, tasks]; a zero gradient gives 0."""
    norms = gramian.diagonal().clamp(min=0.0).sqrt()
    return gramian / torch.outer(norms, norms).clamp(min=torch.finfo(gramian.dtype).tiny)
