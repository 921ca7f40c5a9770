"""How the weights of linear layers lie in memory."""

from __future__ import annotations

import mmap
from contextlib import suppress

import torch
from torch import Tensor, nn


def by_columns(module: nn.Module) -> None:
    """Lay the weights of all linear layers out by columns; values and shapes stay as they are.

    A CPU's matrix product then reads them as they lie; by rows it turns them first, every time,
    which for a single sentence takes about as long as the product itself.
    """
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    rooms = _in_large_pages([part.weight.nbytes for part in linear])
    for part, room in zip(linear, rooms, strict=True):
        weight = part.weight.data
        columns = room.view(weight.dtype).view(weight.t().shape)
        part.weight.data = columns.copy_(weight.t()).t()


def _in_large_pages(sizes: list[int]) -> list[Tensor]:
    """Memory, uint8 [size] each, end to end in large pages where the system has them.

    A single sentence reads every weight just once, and thousands of small pages would have to be
    looked up on the way.
    """
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return list(torch.empty(sum(sizes), dtype=torch.uint8).split_with_sizes(sizes))
    memory = mmap.mmap(-1, sum(sizes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without them goes on with small ones
        memory.madvise(mmap.MADV_HUGEPAGE)
    return list(torch.frombuffer(memory, dtype=torch.uint8).split_with_sizes(sizes))
