"""Gradient surgery: the weights with which the tasks' gradients are added up.

The algorithms are torchjd's; they see only the small matrix of inner products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.specs import Surgery


def _from_torchjd(name: str, **options: float) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        from torchjd import aggregation  # takes seconds, and most stages need none of it

        weighting: nn.Module = getattr(aggregation, name)(**options)
        return weighting

    return build


_BUILDERS: dict[Surgery, Callable[[], nn.Module]] = {
    "pcgrad": _from_torchjd("PCGradWeighting"),
    "gradvac": _from_torchjd("GradVacWeighting"),
    "upgrad": _from_torchjd("UPGradWeighting"),
    # CAGrad's own paper recommends c = 0.5 for its supervised tasks.
    "cagrad": _from_torchjd("CAGradWeighting", c=0.5),
    "mgda": _from_torchjd("MGDAWeighting"),
    "aligned-mtl": _from_torchjd("AlignedMTLWeighting"),
    "imtl-g": _from_torchjd("IMTLGWeighting"),
    "dualproj": _from_torchjd("DualProjWeighting"),
}


class Surgeon:
    """One algorithm at work in a stage; some remember earlier steps."""

    def __init__(self, name: Surgery) -> None:
        try:
            self._weighting = _BUILDERS[name]()
        except ImportError as error:
            raise TercetError(
                f"surgery {name!r} needs further packages: pip install 'tercet[surgery]'."
            ) from error

    def weights(self, gramian: Tensor) -> Tensor:
        """Gram matrix of the tasks' gradients [tasks, tasks] to weights [tasks]."""
        weights: Tensor = self._weighting(gramian)
        return weights

    def state(self) -> dict[str, Tensor]:
        """What it remembers."""
        return dict(self._weighting.state_dict())

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Remember what another one did."""
        if state:
            tasks = next(iter(state.values())).shape[0]
            # The memory takes its shape at the first call.
            self.weights(torch.eye(tasks))
            self._weighting.load_state_dict(dict(state))


def cosines(gramian: Tensor) -> Tensor:
    """Cosines between the tasks' gradients, [tasks, tasks]; a zero gradient gives 0."""
    norms = gramian.diagonal().clamp(min=0.0).sqrt()
    return gramian / torch.outer(norms, norms).clamp(min=torch.finfo(gramian.dtype).tiny)
