"""A batch as one process reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from tercet.specs import Mode
from tercet.text.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Supervision:
    """What a batch's outputs are compared with; None for what its task does not use.

    labels: int64 classes or float32 grades [own rows]
    targets: a teacher's, float32 [own rows, k]
    places, words: int64 [masked], where words are masked and which ones
    """

    labels: Tensor | None = None
    targets: Tensor | None = None
    places: Tensor | None = None
    words: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Those that are not None, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def to(self, device: torch.device) -> Supervision:
        moved = {name: t.to(device, non_blocking=True) for name, t in self.tensors().items()}
        return Supervision(**moved)


@dataclass(frozen=True, slots=True)
class Batch:
    """One process's share of a batch, on the host.

    tokens: of each mode of the task; no mode where this process has no rows
    first, own, rows: where its own rows begin, how many they are, and those of all processes
    total: rows of the step over all processes, so that losses and gradients add up
    """

    task: str
    tokens: Mapping[Mode, Tokens]
    supervision: Supervision
    first: int
    own: int
    rows: int
    total: int
