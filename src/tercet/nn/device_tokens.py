"""Ragged tokens on the device of an encoder, with everything that attention needs."""

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
class AttentionBlock:
    """Rows that one call of attention takes.

    rows, length: the block is [rows, length] tokens
    real: bool [rows, length], False on padding; None when every row has `length` tokens
    """

    rows: int
    length: int
    real: Tensor | None


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """How attention divides a ragged batch into blocks of similar length; made once per batch.

    order: int64 [total], the token at each place inside the encoder; None when tokens keep
        their places
    places: int64 [total], the inverse of `order`; None when `order` is
    slots: int64 [total], the place of each token in the concatenated padded blocks; None when
        no block has padding
    """

    order: Tensor | None
    places: Tensor | None
    slots: Tensor | None
    blocks: tuple[AttentionBlock, ...]


@dataclass(frozen=True, slots=True)
class DeviceTokens:
    """`Tokens` on a device.

    ids, types: int64 [total]
    positions: int64 [total], from 0 within each row
    rows: int64 [total], the row of each token
    offsets: int32 [count + 1]
    longest: tokens of the longest row
    count: rows
    used: how many of the first rows are read; the others only fill a fixed shape
    """

    ids: Tensor
    types: Tensor
    positions: Tensor
    rows: Tensor
    offsets: Tensor
    longest: int
    count: int
    used: int
    plan: AttentionPlan

    @classmethod
    def from_host(cls, tokens: Tokens, device: torch.device) -> DeviceTokens:
        """Plan on the host and move everything in one transfer that the host does not await."""
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
        """From arrays on the device; shapes: rows and length of each block."""
        blocks = tuple(
            AttentionBlock(rows=rows, length=length, real=arrays.get(f"real{index}"))
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
            plan=AttentionPlan(
                order=arrays.get("order"),
                places=arrays.get("places"),
                slots=arrays.get("slots"),
                blocks=blocks,
            ),
        )


@dataclass(frozen=True, slots=True)
class PackedTokens:
    """All arrays of a batch in one buffer on the host, for one transfer to a device.

    buffer: uint8 [bytes], pinned where a GPU reads it
    parts: name, type and shape of each array in the buffer, in order
    """

    buffer: Tensor
    parts: tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]
    shapes: tuple[tuple[int, int], ...]
    longest: int
    count: int
    used: int

    @classmethod
    def pack(cls, tokens: Tokens, plan: HostPlan, *, used: int, pinned: bool) -> PackedTokens:
        """Copy tokens and plan into one buffer; the first `used` rows are read."""
        arrays = _arrays(tokens, plan)
        size = sum(_aligned(array.nbytes) for array in arrays.values())
        buffer = torch.empty(size, dtype=torch.uint8, pin_memory=pinned)
        start = 0
        for array in arrays.values():
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            buffer[start : start + array.nbytes].numpy()[:] = flat
            start += _aligned(array.nbytes)
        return cls(
            buffer=buffer,
            parts=tuple((n, _TORCH_TYPES[a.dtype.name], a.shape) for n, a in arrays.items()),
            shapes=tuple(plan.shapes),
            longest=tokens.longest,
            count=len(tokens),
            used=used,
        )

    def unpack(self, buffer: Tensor) -> DeviceTokens:
        """Tokens as views of a buffer, on any device, with the same content as this one."""
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
    """All arrays of tokens on a device, by name."""
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


_TORCH_TYPES = {"int64": torch.int64, "int32": torch.int32, "bool": torch.bool}
