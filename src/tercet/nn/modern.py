"""ModernBERT's parts: rotary positions, local attention and gated feed-forward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from tercet.nn.architectures.modernbert import LayerType, ModernbertConfig
from tercet.nn.attention import (
    HEAD_WIDTHS,
    AttentionInputs,
    SelfAttention,
    by_blocks,
    is_worth_a_kernel,
)
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.dropout import Dropout
from tercet.nn.encoder import activate, add, norm
from tercet.nn.side import SideLayer, project
from tercet.nn.window import attend_window, window_bias


class ModernEmbeddings(nn.Module):
    """Word embeddings alone; the position of a word is known to attention only."""

    def __init__(self, config: ModernbertConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.norm = norm(config)
        self.dropout = Dropout(config.embedding_dropout)

    def forward(self, tokens: DeviceTokens) -> Tensor:
        """tokens -> [total, width], in the order of the attention plan."""
        order = tokens.plan.order
        ids = tokens.ids if order is None else tokens.ids.index_select(0, order)
        return self.dropout.forward(self.norm.forward(self.words.forward(ids)))


@dataclass(frozen=True, slots=True)
class Turns:
    """How far the layers of each type turn queries and keys, and what local layers see.

    cosines, sines: by type of layer, [total, 1, 1, head_width / 2], in the order of the plan
    biases: of each block for local layers, see `window_bias`
    """

    cosines: dict[LayerType, Tensor]
    sines: dict[LayerType, Tensor]
    biases: tuple[Tensor | None, ...]


class Rotary(nn.Module):
    """Rotary positions (Su et al., 2021): tokens turn by angles that grow with their positions."""

    def __init__(self, config: ModernbertConfig) -> None:
        super().__init__()
        self.kinds: list[LayerType] = sorted(set(config.layer_types))
        self.reach = config.window // 2
        head_width = config.width // config.heads
        steps = torch.arange(0, head_width, 2, dtype=torch.float, device="cpu") / head_width
        for kind in self.kinds:
            rates = 1.0 / config.angle(kind) ** steps
            # Kept as bits: weights in half precision must not round angles.
            self.register_buffer(kind, rates.view(torch.int32), persistent=False)

    def forward(self, tokens: DeviceTokens, dtype: torch.dtype) -> Turns:
        """tokens -> what all layers share; dtype: in which they compute"""
        order = tokens.plan.order
        positions = tokens.positions if order is None else tokens.positions.index_select(0, order)
        angles = {
            kind: positions[:, None] * self.get_buffer(kind).view(torch.float32)
            for kind in self.kinds
        }
        device = tokens.ids.device
        return Turns(
            {kind: angle.cos()[:, None, None] for kind, angle in angles.items()},
            {kind: angle.sin()[:, None, None] for kind, angle in angles.items()},
            tuple(window_bias(block, self.reach, dtype, device) for block in tokens.plan.blocks),
        )


class ModernAttention(SelfAttention):
    """Attention with rotary positions, to the whole row or to the tokens near by."""

    def __init__(self, config: ModernbertConfig, kind: LayerType) -> None:
        super().__init__(
            width=config.width,
            heads=config.heads,
            dropout=config.attention_dropout,
            bias=config.attention_bias,
        )
        self.kind: LayerType = kind
        self.reach = config.window // 2

    def attend(self, qkv: Tensor, inputs: AttentionInputs) -> Tensor:
        """qkv [total, 3, heads, head_width] -> [total, heads, head_width]."""
        turns: Turns = inputs.relations
        qkv = turn(qkv, turns.cosines[self.kind], turns.sines[self.kind])
        is_all_near = inputs.varlen and inputs.tokens.longest <= self.reach + 1
        if self.kind == "full_attention" or is_all_near:
            return super().attend(qkv, inputs)
        dropout = self.dropout if self.training else 0.0
        attend = partial(attend_window, half=self.reach, dropout=dropout)
        return by_blocks(qkv, inputs.tokens.plan, turns.biases, attend)


def turn(qkv: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn queries and keys in their planes of dimensions i, i + half; without gradients in place.

    qkv [total, 3, heads, head_width] -> the same; computed in float32
    """
    if qkv.shape[-1] in HEAD_WIDTHS and is_worth_a_kernel(len(qkv), qkv.dtype, qkv.device):
        # Triton is imported where it is used: it takes time, and most machines lack it.
        from tercet.nn import launches

        return launches.turn(qkv, cosines, sines)
    qk, value = qkv.split_with_sizes([2, 1], dim=1)
    first, second = qk.chunk(2, dim=-1)
    # Each half by itself: copies of all would take several times the memory traffic.
    turned = (
        torch.addcmul(first * cosines, second, sines, value=-1),
        torch.addcmul(second * cosines, first, sines),
    )
    if torch.is_grad_enabled():
        joined = torch.cat([half.to(qkv.dtype) for half in turned], dim=-1)
        return torch.cat([joined, value], dim=1)
    first.copy_(turned[0])
    second.copy_(turned[1])
    return qkv


class GatedFeedForward(nn.Module):
    """Expand, activate one half and multiply it by the other, contract (GeGLU, Shazeer, 2020)."""

    def __init__(self, config: ModernbertConfig) -> None:
        super().__init__()
        self.activation = config.activation
        bias = config.feed_forward_bias
        self.expand = nn.Linear(config.width, config.expand_width, bias=bias)
        self.contract = nn.Linear(config.feed_forward, config.width, bias=bias)
        self.dropout = Dropout(config.dropout)

    def forward(self, hidden: Tensor, side: SideLayer | None = None) -> Tensor:
        """[total, width] -> [total, width]"""
        expanded = project(self.expand, hidden, side.expand if side is not None else None)
        neurons = self.dropout.forward(self._gate(expanded))
        return project(self.contract, neurons, side.contract if side is not None else None)

    def neurons(self, hidden: Tensor) -> Tensor:
        """The gated neurons: [total, width] -> [total, feed_forward]."""
        return self._gate(self.expand.forward(hidden))

    def _gate(self, expanded: Tensor) -> Tensor:
        is_large = is_worth_a_kernel(len(expanded), expanded.dtype, expanded.device)
        if self.activation == "gelu" and is_large:
            from tercet.nn import launches

            return launches.gate_gelu(expanded)
        activated, gate = expanded.chunk(2, dim=-1)
        activated = activate(activated, self.activation)
        return activated * gate if torch.is_grad_enabled() else activated.mul_(gate)


class ModernLayer(nn.Module):
    """Attention and feed-forward, each after a norm and added to its input."""

    def __init__(self, config: ModernbertConfig, number: int) -> None:
        super().__init__()
        # The embeddings have just been normed.
        self.attention_norm = norm(config) if number else None
        self.attention = ModernAttention(config, config.layer_types[number])
        self.feed_forward_norm = norm(config)
        self.feed_forward = GatedFeedForward(config)
        self.dropout = Dropout(config.attention_dropout)

    def forward(
        self, hidden: Tensor, inputs: AttentionInputs, side: SideLayer | None = None
    ) -> Tensor:
        """hidden [total, width] -> [total, width]."""
        normed = hidden if self.attention_norm is None else self.attention_norm.forward(hidden)
        attended = self.attention.forward(normed, inputs, side)
        hidden = add(hidden, self.dropout.forward(attended))
        added: Tensor = self.feed_forward(self.feed_forward_norm.forward(hidden), side)
        return add(hidden, added)
