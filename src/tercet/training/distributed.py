"""The processes of a training run, as torchrun starts them; a single one without it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tercet.errors import ReportedElsewhereError, TercetError


@dataclass(frozen=True, slots=True)
class World:
    """This process among those of a run."""

    rank: int
    size: int
    device: torch.device

    @classmethod
    def join(cls, device: str | None = None) -> World:
        """Join the other processes; `device` defaults to a GPU where there is one."""
        local = int(os.environ.get("LOCAL_RANK", "0"))
        chosen = _device(device, local)
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size > 1 and not dist.is_initialized():
            # Default arguments of this module are the group at the time of its import. Imported by
            # an optimiser later, it would keep the group alive after `leave`, and the group's
            # threads abort a process if they free a tensor while Python ends.
            import_module("torch.distributed.nn.functional")
            dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
        return cls(rank=int(os.environ.get("RANK", "0")), size=size, device=chosen)

    def leave(self) -> None:
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which alone writes files and messages."""
        return self.rank == 0

    def bounds(self, rows: int) -> list[int]:
        """Where each rank's contiguous share of a batch begins, and the end, [size + 1]."""
        return [rank * rows // self.size for rank in range(self.size + 1)]

    def sum_(self, tensor: Tensor) -> None:
        """Add up a tensor over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def gather(self, columns: Sequence[Tensor], *, rows: int) -> tuple[Tensor, ...]:
        """Every rank's rows [local, width] of each column as [rows, width], with gradients."""
        if self.size == 1:
            return tuple(columns)
        return tuple(_gather(column, self, rows) for column in columns)

    def from_main(self, values: Sequence[float]) -> list[float]:
        """The values of the main process, on every process."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        received: list[float] = tensor.tolist()
        return received

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process."""
        if self.size == 1:
            return flag
        votes = torch.tensor(float(flag), device=self.device)
        self.sum_(votes)
        return votes.item() > 0.0

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Around work that may fail on any process: either all continue or none does.

        The first process that failed reports why; the others end silently.
        """
        failure: TercetError | None = None
        try:
            yield
        except TercetError as error:
            failure = error
        failed = torch.zeros(self.size, device=self.device)
        failed[self.rank] = float(failure is not None)
        self.sum_(failed)
        if failure is not None and not failed[: self.rank].any():
            raise failure
        if failed.any():
            raise ReportedElsewhereError

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            dist.barrier()


class _Gather(torch.autograd.Function):
    """The rows of all ranks in order; each rank receives the gradient of its own."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, world: World, rows: int) -> Tensor:
        bounds = world.bounds(rows)
        ctx.world, ctx.share = world, slice(bounds[world.rank], bounds[world.rank + 1])
        whole = local.new_zeros(rows, local.shape[1])
        whole[ctx.share] = local
        world.sum_(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        whole = gradients[0].contiguous().clone()
        ctx.world.sum_(whole)
        return whole[ctx.share], None, None


def _gather(local: Tensor, world: World, rows: int) -> Tensor:
    gathered: Tensor = _Gather.apply(local, world, rows)  # type: ignore[no-untyped-call]
    return gathered


def _device(name: str | None, local: int) -> torch.device:
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise TercetError(f"device {name!r} is unknown; use cpu or cuda.")
    device = torch.device(name)
    if device.type == "cuda":
        index, count = local if device.index is None else device.index, torch.cuda.device_count()
        if index >= count:
            available = f"{count} GPU{'s' * (count != 1)}" if count else "no GPU"
            raise TercetError(f"There is no GPU {index} (from 0): torch sees {available}.")
        device = torch.device("cuda", index)
        torch.cuda.set_device(device)
    return device
