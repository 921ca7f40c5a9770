"""Ragged tokens on the device of an encoder, with everything attention needs beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.errors import TercetError
from tercet.nn.plan import HostPlan, exact_blocks, padded_blocks
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
    used: the first rows, those whose vectors are wanted; the others only fill a fixed shape
    """

    ids: Tensor
    types: Tensor
    positions: Tensor
    rows: Tensor
    offsets: Tensor
    longest: int
    count: int
    used: int
    plan: Plan

    @classmethod
    def from_host(cls, tokens: Tokens, device: torch.device) -> DeviceTokens:
        """Plan on the host and move everything at once; the host never waits for the device."""
        if device.type == "cpu":
            plan = exact_blocks(tokens.lengths)
            arrays = {name: torch.from_numpy(a) for name, a in _arrays(tokens, plan).items()}
            count = len(tokens)
            return cls.assemble(
                arrays, plan.shapes, longest=tokens.longest, count=count, used=count
            )
        plan = padded_blocks(tokens.lengths)
        packed = PackedTokens.pack(tokens, plan, used=len(tokens), pinned=device.type == "cuda")
        return packed.unpack(packed.buffer.to(device, non_blocking=True))

    @classmethod
    def assemble(
        cls,
        arrays: Mapping[str, Tensor],
        shapes: Sequence[tuple[int, int]],
        *,
        longest: int,
        count: int,
        used: int,
    ) -> DeviceTokens:
        """Of arrays that are on their device; shapes: rows and length of each block."""
        blocks = tuple(
            Block(rows=rows, length=length, real=arrays.get(f"real{index}"))
            for index, (rows, length) in enumerate(shapes)
        )
        return cls(
            ids=arrays["ids"],
            types=arrays["types"],
            positions=arrays["positions"],
            rows=arrays["rows"],
            offsets=arrays["offsets"],
            longest=longest,
            count=count,
            used=used,
            plan=Plan(
                order=arrays.get("order"),
                places=arrays.get("places"),
                slots=arrays.get("slots"),
                blocks=blocks,
            ),
        )


@dataclass(frozen=True, slots=True)
class PackedTokens:
    """All arrays of a batch in one buffer on the host, to be moved in one transfer.

    buffer: uint8 [bytes], pinned where a GPU is to read it
    parts: name, type and shape of each array in the buffer, in their order
    """

    buffer: Tensor
    parts: tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]
    shapes: tuple[tuple[int, int], ...]
    longest: int
    count: int
    used: int

    @classmethod
    def pack(cls, tokens: Tokens, plan: HostPlan, *, used: int, pinned: bool) -> PackedTokens:
        """Lay out tokens and the plan of attention; the first `used` rows are wanted."""
        arrays = _arrays(tokens, plan)
        buffer = torch.empty(sum(map(_room, arrays.values())), dtype=torch.uint8, pin_memory=pinned)
        start = 0
        for array in arrays.values():
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            buffer[start : start + array.nbytes].numpy()[:] = flat
            start += _room(array)
        return cls(
            buffer=buffer,
            parts=tuple((n, _TORCH_TYPES[a.dtype.name], a.shape) for n, a in arrays.items()),
            shapes=tuple(plan.shapes),
            longest=tokens.longest,
            count=len(tokens),
            used=used,
        )

    def unpack(self, buffer: Tensor) -> DeviceTokens:
        """Views of a buffer, on any device, that holds what this one holds."""
        arrays: dict[str, Tensor] = {}
        start = 0
        for name, dtype, shape in self.parts:
            size = dtype.itemsize * math.prod(shape)
            arrays[name] = buffer[start : start + size].view(dtype).view(shape)
            start += _aligned(size)
        return DeviceTokens.assemble(
            arrays, self.shapes, longest=self.longest, count=self.count, used=self.used
        )


def _arrays(tokens: Tokens, plan: HostPlan) -> dict[str, NDArray[np.generic]]:
    """All arrays that tokens on a device have, by name."""
    lengths = tokens.lengths
    if len(lengths) and not lengths.min():
        raise TercetError(f"row {int(lengths.argmin())} of a batch has no tokens")
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return {
        "ids": tokens.ids.astype(np.int64),
        "types": tokens.types.astype(np.int64),
        "positions": np.arange(len(rows)) - tokens.offsets[rows],
        "rows": rows,
        "offsets": tokens.offsets.astype(np.int32),
        **plan.arrays,
    }


def _aligned(size: int) -> int:
    """Every part starts at a multiple of 16 bytes, so that it can be viewed as its own type."""
    return -(-size // 16) * 16


def _room(array: NDArray[np.generic]) -> int:
    return _aligned(array.nbytes)


_TORCH_TYPES = {"int64": torch.int64, "int32": torch.int32, "bool": torch.bool}
