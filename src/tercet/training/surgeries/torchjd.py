"""The algorithms of torchjd; they see only the small matrix of inner products."""

from __future__ import annotations

from functools import partial

from torch import nn


def _weighting(name: str, **options: float) -> nn.Module:
    from torchjd import aggregation  # takes seconds, and most stages need none of it

    weighting: nn.Module = getattr(aggregation, name)(**options)
    return weighting


gradvac = partial(_weighting, "GradVacWeighting")
upgrad = partial(_weighting, "UPGradWeighting")
# CAGrad's own paper recommends c = 0.5 for its supervised tasks.
cagrad = partial(_weighting, "CAGradWeighting", c=0.5)
mgda = partial(_weighting, "MGDAWeighting")
aligned_mtl = partial(_weighting, "AlignedMTLWeighting")
imtl_g = partial(_weighting, "IMTLGWeighting")
dualproj = partial(_weighting, "DualProjWeighting")
