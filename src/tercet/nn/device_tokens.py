"""Ragged tokens on the device of an encoder, with everything attention needs beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.errors import TercetError
from tercet.nn.plan import exact_blocks, padded_blocks
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
        plan = exact_blocks(lengths) if device.type == "cpu" else padded_blocks(lengths)
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
