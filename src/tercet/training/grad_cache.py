"""GradCache: contrastive batches of any size in the memory of a chunk of them.

All texts of a batch are compared with each other, but need not be encoded together. So chunks are
encoded without graphs, the loss of all vectors gives the gradient of each vector, and each chunk is
then encoded again, with the same dropout, and passes the gradients of its vectors on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Mode
from tercet.training.batch import Supervision
from tercet.training.losses import Losses


@dataclass(frozen=True, slots=True)
class GradCache:
    """`seed` seeds torch for a chunk, by its number."""

    losses: Losses
    bf16: bool
    seed: Callable[[int], None]

    def backward(
        self, task: str, rows: NDArray[np.int64], *, total: int, weight: float, chunk: int
    ) -> Tensor:
        """Add the gradient of `weight` times the loss of a batch; the loss, detached."""
        ((mode, spec),) = self.losses.tasks[task].modes.items()
        batch, own = self.losses.share(task, rows, total=total)
        chunks = [own[begin : begin + chunk] for begin in range(0, len(own), chunk)]
        with torch.no_grad():
            encoded = [self._columns(task, mode, part, n) for n, part in enumerate(chunks)]
        depths = 1 + len(self.losses.network.lesser_depths)
        encoded = encoded or [self.losses.no_columns(task, mode) * depths]
        columns = tuple(torch.cat(parts).requires_grad_() for parts in zip(*encoded, strict=True))
        each = len(columns) // depths
        by_depth = [columns[place : place + each] for place in range(0, len(columns), each)]
        with self._autocast():
            loss = spec.weight * self.losses.loss_of(batch, mode, by_depth, Supervision())
        whole = torch.autograd.grad(loss * weight, columns)
        for number, part in enumerate(chunks):
            begin = number * chunk
            gradients = [gradient[begin : begin + len(part)] for gradient in whole]
            torch.autograd.backward(self._columns(task, mode, part, number), gradients)
        return loss.detach()

    def _columns(
        self, task: str, mode: Mode, rows: NDArray[np.int64], number: int
    ) -> tuple[Tensor, ...]:
        """The columns of all depths, the full one first."""
        self.seed(number)
        tokens = self.losses.tokens(task, mode, rows)
        with self._autocast():
            on_device = DeviceTokens.from_host(tokens, self.losses.world.device)
            networks = self.losses.network.in_one_pass()
            side = self.losses.network.side_of(task)
            by_depth = [each.columns(on_device, rows=len(rows), side=side) for each in networks]
            return tuple(column for columns in by_depth for column in columns)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.losses.world.device.type, torch.bfloat16, enabled=self.bf16)
