"""The memory layout of the weights of linear layers."""

from __future__ import annotations

import mmap
from contextlib import suppress

import torch
from torch import Tensor, nn

from tercet.nn.onednn import (
    OneDnnLinear,
    PackedLinear,
    is_worth_packing,
    is_worth_training,
    replace_linear,
)


def arrange_for_cpu(module: nn.Module) -> None:
    """Store the weights of all linear layers as this CPU's products without gradients want them;
    values and shapes do not change."""
    if is_worth_packing():
        replace_linear(module, PackedLinear.of)
    else:
        store_by_columns(module)


def arrange_for_training(module: nn.Module) -> None:
    """Let all linear layers multiply as is fastest on this CPU while their weights change; values,
    shapes and names do not change."""
    if is_worth_training():
        replace_linear(module, OneDnnLinear.of)


def store_by_columns(module: nn.Module) -> None:
    """Store the weights of all linear layers by columns; values and shapes do not change.

    A CPU's matrix product reads them directly then; stored by rows, it transposes them first, every
    time, which for a single sentence takes about as long as the product itself.
    """
    linear = [part for part in module.modules() if isinstance(part, nn.Linear)]
    buffers = _in_large_pages([part.weight.nbytes for part in linear])
    for part, buffer in zip(linear, buffers, strict=True):
        weight = part.weight.data
        columns = buffer.view(weight.dtype).view(weight.t().shape)
        part.weight.data = columns.copy_(weight.t()).t()


def _in_large_pages(sizes: list[int]) -> list[Tensor]:
    """Buffers, uint8 [size] each, contiguous, in large pages where the system has them.

    A single sentence reads every weight just once; thousands of small pages would each need a
    lookup.
    """
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return list(torch.empty(sum(sizes), dtype=torch.uint8).split_with_sizes(sizes))
    memory = mmap.mmap(-1, sum(sizes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without large pages uses small ones
        memory.madvise(mmap.MADV_HUGEPAGE)
    return list(torch.frombuffer(memory, dtype=torch.uint8).split_with_sizes(sizes))
