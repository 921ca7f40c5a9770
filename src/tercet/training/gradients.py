"""Gradients in flat buffers: one row per task for the shared body, one more for the heads.

The backward of each task writes into its own row, because the parameters' `.grad` are views of it.
So surgery needs no second backward, no retained graph and no copy, and ranks sum all rows in one
reduction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from tercet.training.distributed import World

_ALIGNED = 64
_PARTS = 1024


class GradientRows:
    """The gradients of one step.

    body: parameters that tasks share, rows [rows, parameters of the body]
    heads: parameters of one or several tasks, one row [parameters of all heads]
    """

    def __init__(
        self,
        body: Sequence[nn.Parameter],
        heads: Mapping[str, Sequence[nn.Parameter]],
        *,
        rows: int,
        device: torch.device,
    ) -> None:
        self._body = list(body)
        self._heads = {task: list(parameters) for task, parameters in heads.items()}
        self.rows = torch.zeros(rows, _length(self._body), device=device)
        # Tasks may share some.
        every_head = list(dict.fromkeys(p for own in self._heads.values() for p in own))
        self._head_row = torch.zeros(_length(every_head), device=device)
        # Torch's own operators read the rows several times.
        self._has_kernels = device.type == "cuda" and find_spec("triton") is not None
        self._row_views = [_views(row, self._body) for row in self.rows]
        self._head_views = dict(zip(every_head, _views(self._head_row, every_head), strict=True))

    def clear(self) -> None:
        """Before a step: all rows are zero, no head has a gradient."""
        self.rows.zero_()
        self._head_row.zero_()
        for parameter in self._head_views:
            parameter.grad = None

    def write_to(self, row: int, *, task: str) -> None:
        """The next backward adds to this row, and to the heads of this task."""
        for parameter, view in zip(self._body, self._row_views[row], strict=True):
            parameter.grad = view
        for parameter in self._heads.get(task, []):
            parameter.grad = self._head_views[parameter]

    def add_over_ranks(self, world: World) -> None:
        world.sum_(self.rows)
        world.sum_(self._head_row)

    def gramian(self, rows: int) -> Tensor:
        """Inner products of the first rows with each other, [rows, rows]."""
        if self._has_kernels:
            from tercet.training import row_kernels

            return row_kernels.gramian(self.rows[:rows])
        # The rows are few and long: in many parts they keep a GPU busy.
        parts = self.rows[:rows].view(rows, _PARTS, -1).transpose(0, 1)
        return torch.bmm(parts, parts.transpose(1, 2)).sum(0)

    def combine(self, weights: Tensor) -> None:
        """Make the weighted sum of the first rows the gradient, in place in row 0."""
        if self._has_kernels:
            from tercet.training import row_kernels

            row_kernels.combine(self.rows[: len(weights)], weights)
        else:
            whole = self.rows[0].mul_(weights[0])
            for row, weight in zip(self.rows[1:], weights[1:], strict=False):
                whole.addcmul_(row, weight)
        for parameter, view in zip(self._body, self._row_views[0], strict=True):
            parameter.grad = view

    def clip(self, greatest: float) -> Tensor:
        """The norm of the whole gradient, which is scaled down to at most `greatest`."""
        norm: Tensor = torch.linalg.vector_norm(
            torch.stack([torch.linalg.vector_norm(part) for part in (self.rows[0], self._head_row)])
        )
        if greatest > 0.0 and not self._is_surely_less(norm, greatest):
            factor = (greatest / (norm + 1e-6)).clamp(max=1.0)
            self.rows[0].mul_(factor)
            self._head_row.mul_(factor)
        return norm

    @staticmethod
    def _is_surely_less(norm: Tensor, greatest: float) -> bool:
        """Whether nothing needs scaling; unknown on a GPU, where to ask is to wait."""
        return norm.device.type == "cpu" and norm.item() + 1e-6 <= greatest


def _space(parameter: nn.Parameter) -> int:
    """Numbers reserved for the gradient of a parameter: kernels want aligned addresses."""
    return -(-parameter.numel() // _ALIGNED) * _ALIGNED


def _length(parameters: Iterable[nn.Parameter]) -> int:
    """Numbers in a row, a multiple of the parts that a Gram matrix is summed from."""
    total = sum(_space(parameter) for parameter in parameters)
    return -(-total // _PARTS) * _PARTS


def _views(flat: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Views of a flat buffer in the shapes of the parameters."""
    spaces = [_space(parameter) for parameter in parameters]
    pieces = torch.split(flat[: sum(spaces)], spaces)
    return [piece[: p.numel()].view_as(p) for piece, p in zip(pieces, parameters, strict=True)]
