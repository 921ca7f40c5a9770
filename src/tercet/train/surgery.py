"""Gradient surgery: the weights with which the tasks' gradients are added up.

The algorithms are torchjd's; they see only the small matrix of inner products. PCGrad alone is our
own: torchjd's reads that matrix on the CPU, and a GPU then idles until the next step is queued.
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


class PCGradWeighting(nn.Module):
    """PCGrad without a branch, so that nothing waits for its inner products.

    It draws the orders that torchjd's draws, and gives the same weights.
    """

    def forward(self, gramian: Tensor) -> Tensor:
        """Gram matrix [tasks, tasks] to weights [tasks]."""
        tasks, device = len(gramian), gramian.device
        drawn = torch.stack([torch.randperm(tasks) for _ in range(tasks)], dim=1)
        if device.type == "cuda":
            drawn = drawn.pin_memory().to(device, non_blocking=True)
        own = torch.arange(tasks, device=device)
        weights = torch.eye(tasks, device=device, dtype=gramian.dtype)
        # Row i makes up the gradient of task i, once it has met the tasks before in its order.
        for other in drawn:
            products = (gramian[other] * weights).sum(dim=1)
            opposed = (products < 0.0) & (other != own)
            taken = torch.where(opposed, products / gramian.diagonal()[other], 0.0)
            weights.scatter_add_(1, other[:, None], -taken[:, None])
        return weights.sum(dim=0)


_BUILDERS: dict[Surgery, Callable[[], nn.Module]] = {
    "pcgrad": PCGradWeighting,
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
