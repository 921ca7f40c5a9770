"""PCGrad. torchjd's reads the inner products on the CPU, which lets the GPU idle."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PCGrad(nn.Module):
    """PCGrad without a branch, so that nothing waits for its inner products.

    It draws the same orders as torchjd's, and gives the same weights.
    """

    def forward(self, gramian: Tensor) -> Tensor:
        """Gram matrix [tasks, tasks] to weights [tasks]."""
        tasks, device = len(gramian), gramian.device
        orders = torch.stack([torch.randperm(tasks) for _ in range(tasks)], dim=1)
        if device.type == "cuda":
            orders = orders.pin_memory().to(device, non_blocking=True)
        own = torch.arange(tasks, device=device)
        weights = torch.eye(tasks, device=device, dtype=gramian.dtype)
        # Row i is the gradient of task i after the tasks before in its order.
        for other in orders:
            products = (gramian[other] * weights).sum(dim=1)
            opposed = (products < 0.0) & (other != own)
            removed = torch.where(opposed, products / gramian.diagonal()[other], 0.0)
            weights.scatter_add_(1, other[:, None], -removed[:, None])
        return weights.sum(dim=0)


class MeanPCGrad(PCGrad):
    """The mean of the projected gradients, the default of the widely used PyTorch code (Tseng,
    2020); Yu et al. give the sum."""

    def forward(self, gramian: Tensor) -> Tensor:
        """Gram matrix [tasks, tasks] to weights [tasks]."""
        return super().forward(gramian) / len(gramian)
