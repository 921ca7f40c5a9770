"""Ragged tokens on the device of an encoder, with everything attention needs beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.errors import TercetError
from tercet.text.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that attention takes in one call.

    rows, length: the block is [rows, length] tokens
    real: bool [rows, length], False on padding; None when every row has `length` tokens
    """

    rows: int
    length: int
    real: Tensor | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How attention cuts a ragged batch into blocks of like length; made once a batch.

    order: int64 [total], the token that stands at each place inside the encoder; None when
        tokens keep their places
    places: int64 [total], the inverse of `order`; None with it
    slots: int64 [total], where each token stands among the padded blocks laid end to end;
        None when no block has padding
    """

    order: Tensor | None
    places: Tensor | None
    slots: Tensor | None
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class DeviceTokens:
    """`Tokens` on a device.

    ids, types: int64 [total]
    positions: int64 [total], from 0 within each row
    rows: int64 [total], the row of each token
    offsets: int32 [count + 1]
    longest: tokens of the longest row
    count: rows
    """

    ids: Tensor
    types: Tensor
    positions: Tensor
    rows: Tensor
    offsets: Tensor
    longest: int
    count: int
    plan: Plan

    @classmethod
    def from_host(cls, tokens: Tokens, device: torch.device) -> DeviceTokens:
        """Plan on the host and move everything at once; the host never waits for the device."""
        lengths = tokens.lengths
        if len(lengths) and not lengths.min():
            raise TercetError(f"row {int(lengths.argmin())} of a batch has no tokens")
        plan = _exact_blocks(lengths) if device.type == "cpu" else _padded_blocks(lengths)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        arrays = {
            "ids": tokens.ids.astype(np.int64),
            "types": tokens.types.astype(np.int64),
            "positions": np.arange(len(rows)) - tokens.offsets[rows],
            "rows": rows,
            "offsets": tokens.offsets.astype(np.int32),
            **plan.arrays,
        }
        moved = _to_device(arrays, device)
        return cls(
            ids=moved["ids"],
            types=moved["types"],
            positions=moved["positions"],
            rows=moved["rows"],
            offsets=moved["offsets"],
            longest=tokens.longest,
            count=len(lengths),
            plan=Plan(
                order=moved.get("order"),
                places=moved.get("places"),
                slots=moved.get("slots"),
                blocks=tuple(
                    Block(rows=rows, length=length, real=moved.get(f"real{index}"))
                    for index, (rows, length) in enumerate(plan.shapes)
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class _HostPlan:
    shapes: list[tuple[int, int]]
    arrays: dict[str, NDArray[np.generic]]


def _exact_blocks(lengths: NDArray[np.int64]) -> _HostPlan:
    """One block a length, no padding: tokens move to their block once, before the first layer.

    On a CPU a call costs little beside its work, and views of contiguous rows cost nothing.
    """
    present, counts = np.unique(lengths, return_counts=True)
    if len(present) == 1 + np.count_nonzero(np.diff(lengths)):
        # Rows of one length already stand together, as in batches sorted by length.
        runs = np.flatnonzero(np.diff(lengths, prepend=-1))
        counts = np.diff(np.append(runs, len(lengths)))
        return _HostPlan(_shapes(counts, lengths[runs]), {})
    by_length = np.argsort(lengths, kind="stable")
    order = _token_order(lengths, by_length)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return _HostPlan(_shapes(counts, present), {"order": order, "places": places})


def _padded_blocks(lengths: NDArray[np.int64]) -> _HostPlan:
    """Few blocks, each of rows longer than half of it; the last takes all rows of 8 or fewer.

    On an accelerator launches cost more than padding. Lengths are multiples of 8, which its
    kernels want of a mask; tokens keep their places, so that a variable-length kernel needs
    nothing of this.
    """
    by_length = np.argsort(lengths, kind="stable")
    ordered = lengths[by_length]
    shapes: list[tuple[int, int]] = []
    arrays: dict[str, NDArray[np.generic]] = {}
    starts = np.empty(len(lengths), np.int64)
    base, end = 0, len(lengths)
    while end:
        length = -(-int(ordered[end - 1]) // 8) * 8
        shortest = length // 2 + 1 if length > 8 else 1
        begin = int(np.searchsorted(ordered, shortest))
        rows = end - begin
        starts[by_length[begin:end]] = base + np.arange(rows) * length
        if ordered[begin] < length:
            arrays[f"real{len(shapes)}"] = np.arange(length) < ordered[begin:end, None]
        shapes.append((rows, length))
        base += rows * length
        end = begin
    first = np.cumsum(lengths) - lengths
    arrays["slots"] = np.repeat(starts - first, lengths) + np.arange(int(lengths.sum()))
    return _HostPlan(shapes, arrays)


def _shapes(counts: NDArray[np.integer], lengths: NDArray[np.int64]) -> list[tuple[int, int]]:
    return list(zip(counts.tolist(), lengths.tolist(), strict=True))


def _token_order(lengths: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of tokens when whole rows are taken in the order `rows`, int64 [total]."""
    starts = np.cumsum(lengths) - lengths
    taken = lengths[rows]
    shift = starts[rows] - (np.cumsum(taken) - taken)
    return np.repeat(shift, taken) + np.arange(int(taken.sum()))


def _to_device(arrays: dict[str, NDArray[np.generic]], device: torch.device) -> dict[str, Tensor]:
    """Move arrays to the device; to CUDA in one pinned buffer and one transfer."""
    if device.type != "cuda":
        return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    # Every part starts at a multiple of 16 bytes, so that it can be viewed as its own type.
    sizes = {name: -(-array.nbytes // 16) * 16 for name, array in arrays.items()}
    staging = torch.empty(sum(sizes.values()), dtype=torch.uint8, pin_memory=True)
    parts = dict(zip(arrays, staging.split_with_sizes(list(sizes.values())), strict=True))
    for name, array in arrays.items():
        parts[name].numpy()[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    received = staging.to(device, non_blocking=True).split_with_sizes(list(sizes.values()))
    return {
        name: part[: array.nbytes].view(_TORCH_TYPES[array.dtype.name]).view(array.shape)
        for (name, array), part in zip(arrays.items(), received, strict=True)
    }


_TORCH_TYPES = {"int64": torch.int64, "int32": torch.int32, "bool": torch.bool}
