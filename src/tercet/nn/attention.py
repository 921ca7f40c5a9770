"""Self-attention on ragged tokens: by blocks of similar length, or a variable-length kernel."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tercet.nn.device_tokens import AttentionBlock, AttentionPlan, DeviceTokens
from tercet.nn.dropped import MergedBlocks, attend_merged, merge
from tercet.nn.side import SideLayer, project

RAGGED_TOKENS, RAGGED_LONGEST = 8192, 128
"""Tokens of a batch, at least, that kernels of inference take; of a row, at most, that attention
with relative positions takes."""
HEAD_WIDTHS = (16, 32, 64, 128)
"""Those that kernels of inference take."""


@dataclass(frozen=True, slots=True)
class AttentionInputs:
    """What all layers share in one forward.

    biases: one per block, added to its scores [rows or 1, heads or 1, length or 1, length]; None
        where there is nothing to add
    varlen: whether one variable-length kernel takes all rows instead of the blocks
    relations: what `Architecture.relations` tells the layers; None where it has none
    ragged_bias: relative position bias [heads, span, span] where one kernel takes it and all rows
        instead of the blocks
    merged: the blocks as attention with dropout takes them on a CPU; None elsewhere
    """

    tokens: DeviceTokens
    biases: tuple[Tensor | None, ...]
    varlen: bool
    relations: Any = None
    ragged_bias: Tensor | None = None
    merged: tuple[MergedBlocks, ...] | None = None

    @classmethod
    def prepare(
        cls,
        tokens: DeviceTokens,
        *,
        bias: Tensor | None,
        dtype: torch.dtype,
        head_width: int,
        varlen: bool = True,
        relations: nn.Module | None = None,
    ) -> AttentionInputs:
        """Choose the kernel and compute masks and bias once for all layers.

        bias: relative position bias [heads, span, span], span at least as long as any block
        dtype: in which the layers compute
        varlen: whether the architecture may take the variable-length kernel, which adds no bias
        relations: the module of `Architecture.relations`
        """
        related = None if relations is None else relations(tokens, dtype)
        fits = varlen and bias is None and tokens.count > 0
        if fits and _has_varlen(tokens.ids.device, dtype, head_width):
            return cls(tokens, (), varlen=True, relations=related)
        if bias is not None and takes_kernel(tokens, dtype, head_width):
            # In float32, as in training: the same compiled kernel.
            wide = bias.float().contiguous()
            return cls(tokens, (), varlen=False, relations=related, ragged_bias=wide)
        biases = tuple(_block_bias(block, bias, dtype) for block in tokens.plan.blocks)
        merged = None
        if torch.is_grad_enabled() and tokens.ids.device.type == "cpu" and _are_exact(tokens.plan):
            merged = merge(tokens.plan.blocks, biases)
        return cls(tokens, biases, varlen=False, relations=related, merged=merged)


class SelfAttention(nn.Module):
    """Multi-head attention of each row to itself, with the projections before and after it."""

    def __init__(self, *, width: int, heads: int, dropout: float, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.dropout = dropout
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)

    def forward(
        self, hidden: Tensor, inputs: AttentionInputs, side: SideLayer | None = None
    ) -> Tensor:
        """hidden [total, width] -> [total, width]."""
        projected = project(self.qkv, hidden, side.qkv if side is not None else None)
        mixed = self.attend(projected.view(-1, 3, self.heads, self.head_width), inputs).flatten(1)
        return project(self.output, mixed, side.output if side is not None else None)

    def attend(self, qkv: Tensor, inputs: AttentionInputs) -> Tensor:
        """qkv [total, 3, heads, head_width] -> [total, heads, head_width]."""
        if inputs.ragged_bias is not None:
            # Triton is imported where it is used: it takes time, and most machines lack it.
            from tercet.nn.launches import attend_ragged

            return attend_ragged(qkv, inputs.tokens, inputs.ragged_bias)
        attend = attend_varlen if inputs.varlen else attend_blocks
        return attend(qkv, inputs, dropout=self.dropout if self.training else 0.0)


def attend_blocks(qkv: Tensor, inputs: AttentionInputs, *, dropout: float) -> Tensor:
    """Attention by blocks: qkv [total, 3, heads, head_width] -> [total, heads, head_width]."""
    if dropout > 0.0 and inputs.merged:
        return attend_merged(qkv, inputs.merged, dropout=dropout)
    return by_blocks(qkv, inputs.tokens.plan, inputs.biases, partial(attend_block, dropout=dropout))


def by_blocks(
    qkv: Tensor,
    plan: AttentionPlan,
    biases: tuple[Tensor | None, ...],
    attend: Callable[[Tensor, AttentionBlock, Tensor | None], Tensor],
) -> Tensor:
    """`attend` for every block with its bias, in the order of the plan.

    qkv [total, 3, heads, head_width] -> [total, heads, head_width]
    """
    if not plan.blocks:
        return qkv[:, 2]
    if len(plan.blocks) == 1 and plan.slots is None:
        return attend(qkv, plan.blocks[0], biases[0])
    sizes = [block.rows * block.length for block in plan.blocks]
    if plan.slots is not None:
        # Copying into zeros, not gathering: its gradient is one plain gather.
        qkv = qkv.new_zeros(sum(sizes), *qkv.shape[1:]).index_copy(0, plan.slots, qkv)
    # One split, not one slice per block: its gradient is one concatenation.
    parts = [
        attend(part, block, bias)
        for part, block, bias in zip(qkv.split_with_sizes(sizes), plan.blocks, biases, strict=True)
    ]
    mixed = torch.cat(parts)
    return mixed if plan.slots is None else mixed.index_select(0, plan.slots)


def attend_block(
    qkv: Tensor, block: AttentionBlock, bias: Tensor | None, *, dropout: float
) -> Tensor:
    """qkv [rows * length, 3, heads, head_width] -> [rows * length, heads, head_width]."""
    shaped = qkv.view(block.rows, block.length, *qkv.shape[1:])
    query, key, value = shaped.permute(2, 0, 3, 1, 4).unbind(0)
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
    return mixed.transpose(1, 2).reshape(-1, *qkv.shape[2:])


def attend_varlen(qkv: Tensor, inputs: AttentionInputs, *, dropout: float) -> Tensor:
    """Attention by CUDA's variable-length flash kernel, with dropout of attention weights.

    qkv [total, 3, heads, head_width] in half precision -> [total, heads, head_width]
    """
    query, key, value = qkv.unbind(1)
    offsets, longest = inputs.tokens.offsets, inputs.tokens.longest
    # The public `varlen_attn` has no dropout.
    mixed: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, offsets, offsets, longest, longest, dropout, False, False
    )[0]
    return mixed


def _block_bias(block: AttentionBlock, bias: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    nearby = None if bias is None else bias[None, :, : block.length, : block.length].to(dtype)
    if block.real is None:
        return nearby
    padding = torch.zeros(block.real.shape, dtype=dtype, device=block.real.device)
    padding = padding.masked_fill(~block.real, -math.inf)[:, None, None, :]
    return padding if nearby is None else nearby + padding


def _are_exact(plan: AttentionPlan) -> bool:
    """Whether no block has padding."""
    return plan.slots is None and all(block.real is None for block in plan.blocks)


def takes_kernel(tokens: DeviceTokens, dtype: torch.dtype, head_width: int) -> bool:
    """Whether the kernels of attention with relative positions take a batch."""
    fits = head_width in HEAD_WIDTHS and tokens.longest <= RAGGED_LONGEST
    return fits and is_worth_a_kernel(len(tokens.ids), dtype, tokens.ids.device)


def is_worth_a_kernel(tokens: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether a Triton kernel of inference takes a batch of so many tokens: these know no gradients
    and no dropout, and compiling one, which takes seconds on a machine that never did, must be
    worth it."""
    is_half = dtype in (torch.float16, torch.bfloat16)
    if not (is_half and tokens >= RAGGED_TOKENS and torch.is_inference_mode_enabled()):
        return False
    return _can_compile(device)


@functools.cache
def _can_compile(device: torch.device) -> bool:
    """Whether Triton compiles kernels for this device."""
    if device.type != "cuda" or torch.version.hip:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0) and find_spec("triton") is not None


def _has_varlen(device: torch.device, dtype: torch.dtype, head_width: int) -> bool:
    fits = dtype in (torch.float16, torch.bfloat16) and head_width % 8 == 0 and head_width <= 256
    return device.type == "cuda" and fits and _varlen_is_known(device)


@functools.cache
def _varlen_is_known(device: torch.device) -> bool:
    """Whether this torch has the private kernel with the arguments that are passed here."""
    if torch.version.hip or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    operator = getattr(torch.ops.aten, "_flash_attention_forward", None)
    if operator is None or not torch.backends.cuda.is_flash_attention_available():
        return False
    names = [argument.name for argument in operator.default._schema.arguments]
    return names[:10] == [
        *("query", "key", "value", "cum_seq_q", "cum_seq_k"),
        *("max_q", "max_k", "dropout_p", "is_causal", "return_debug_mask"),
    ]
