"""Forward and backward as CUDA graphs.

A small batch is a thousand kernels of a few microseconds each, and launching them one by one takes
several times as long as running them. So batches are padded slightly to a few fixed shapes, whose
forward and backward are captured once and replayed for every further batch of the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from tercet.nn.device_tokens import PackedTokens
from tercet.nn.plan import one_block
from tercet.specs import Mode
from tercet.text.tokens import Tokens, padded
from tercet.training.batch import Batch, Supervision
from tercet.training.losses import Losses

# A shape is captured at its third batch: rare ones are not worth it.
_SEEN_BEFORE_CAPTURE = 2
_WARM_UPS = 3
_LENGTHS_PER_SHAPE = 32
_LEAST_TOKENS_PER_SHAPE = 128

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Captured:
    """A graph, and the memory of its batch and of its loss."""

    graph: torch.cuda.CUDAGraph
    buffers: Mapping[Mode, Tensor]
    supervision: Supervision
    loss: Tensor


class Graphs:
    """Runs forward and backward of batches, by replay where possible.

    A graph adds to the memory that `.grad` had at its capture, so it belongs to one row of the
    gradient buffer.
    """

    def __init__(self, losses: Losses, *, bf16: bool) -> None:
        self._losses = losses
        self._bf16 = bf16
        self._seen: dict[Key, int] = {}
        self._captured: dict[Key, _Captured] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def backward(self, batch: Batch, *, weight: float, row: int) -> Tensor:
        """Add the gradient of `weight` times the loss of a batch; the loss, detached."""
        packed = {mode: self._pack(tokens) for mode, tokens in batch.tokens.items()}
        key = _key(batch, packed, weight=weight, row=row)
        captured = self._captured.get(key)
        if captured is None:
            self._seen[key] = self._seen.get(key, 0) + 1
            if self._seen[key] <= _SEEN_BEFORE_CAPTURE:
                return self._eager(batch, packed, weight=weight)
            captured = self._captured[key] = self._capture(batch, packed, weight=weight)
        for mode, buffer in captured.buffers.items():
            buffer.copy_(packed[mode].buffer, non_blocking=True)
        held = captured.supervision.tensors()
        for name, tensor in batch.supervision.tensors().items():
            held[name].copy_(tensor.pin_memory(), non_blocking=True)
        captured.graph.replay()
        return captured.loss.clone()

    def _eager(self, batch: Batch, packed: Mapping[Mode, PackedTokens], *, weight: float) -> Tensor:
        device = self._losses.world.device
        buffers = {g: p.buffer.to(device, non_blocking=True) for g, p in packed.items()}
        supervision = batch.supervision.to(device)
        return self._compute(batch, packed, buffers, supervision, weight=weight)

    def _capture(
        self, batch: Batch, packed: Mapping[Mode, PackedTokens], *, weight: float
    ) -> _Captured:
        device = self._losses.world.device
        buffers = {g: p.buffer.to(device) for g, p in packed.items()}
        supervision = batch.supervision.to(device)

        def compute() -> Tensor:
            return self._compute(batch, packed, buffers, supervision, weight=weight)

        with _untouched_gradients(self._losses.network):
            _warm_up(compute)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                loss = compute()
        return _Captured(graph, buffers, supervision, loss)

    def _compute(
        self,
        batch: Batch,
        packed: Mapping[Mode, PackedTokens],
        buffers: Mapping[Mode, Tensor],
        supervision: Supervision,
        *,
        weight: float,
    ) -> Tensor:
        tokens = {mode: packed[mode].unpack(buffer) for mode, buffer in buffers.items()}
        with torch.autocast("cuda", torch.bfloat16, enabled=self._bf16, cache_enabled=False):
            loss = self._losses.loss_on_device(batch, tokens, supervision)
        torch.autograd.backward(loss * weight)
        return loss.detach()

    def _pack(self, tokens: Tokens) -> PackedTokens:
        fixed = to_fixed_shape(tokens, max_tokens=self._losses.network.encoder.config.max_tokens)
        length = -(-fixed.longest // 8) * 8
        plan = one_block(fixed.lengths, length=length)
        return PackedTokens.pack(fixed, plan, used=len(tokens), pinned=True)


def to_fixed_shape(tokens: Tokens, *, max_tokens: int) -> Tokens:
    """Pad a batch to one of few shapes: longest row and number of tokens are rounded up."""
    longest = min(-(-tokens.longest // _LENGTHS_PER_SHAPE) * _LENGTHS_PER_SHAPE, max_tokens)
    total = len(tokens.ids)
    # An eighth of a power of two: at most an eighth is padding, half of that on average.
    step = max(_LEAST_TOKENS_PER_SHAPE, (1 << total.bit_length()) // 16)
    added = -(-step // max(1, longest - 1)) + 1
    return padded(
        tokens,
        rows=len(tokens) + added,
        total=-(-(total + added) // step) * step,
        longest=longest,
        filler=0,
    )


def _key(batch: Batch, packed: Mapping[Mode, PackedTokens], *, weight: float, row: int) -> Key:
    shapes = tuple((mode, p.parts, p.shapes, p.longest, p.used) for mode, p in packed.items())
    supervised = tuple((name, t.shape) for name, t in batch.supervision.tensors().items())
    return (batch.task, row, weight, batch.own, batch.rows, batch.total, supervised, shapes)


@contextmanager
def _untouched_gradients(network: nn.Module) -> Iterator[None]:
    """Restores the gradients at the end."""
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    # Zero gradients need no copy; with one row per task, these are all.
    before = [gradient.clone() if gradient.any() else None for gradient in gradients]
    yield
    for gradient, saved in zip(gradients, before, strict=True):
        if saved is None:
            gradient.zero_()
        else:
            gradient.copy_(saved)


def _warm_up(compute: Callable[[], Tensor]) -> None:
    """Let libraries choose kernels and allocate memory before the capture."""
    side = _side_stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UPS):
            compute()
    torch.cuda.current_stream().wait_stream(side)


@cache
def _side_stream() -> torch.cuda.Stream:
    """One for all shapes: a stream keeps the workspace of its matrix products for good."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]
