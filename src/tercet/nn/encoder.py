"""Encoders on ragged tokens: every layer sees real tokens only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tercet.errors import TercetError
from tercet.nn.architectures.record import Activation, EncoderConfig
from tercet.nn.attention import AttentionInputs, SelfAttention
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.dropout import Dropout
from tercet.nn.relative import RelativeBias
from tercet.nn.side import SideLayer, SideWeights, project
from tercet.specs.registry import resolve

_INITIAL_SPREAD = 0.02

Forward = Callable[[DeviceTokens, Sequence[int]], list[Tensor] | None]
"""Tokens and depths to the hidden states [total, width] at each depth, in the order of the tokens;
None for batches that it cannot take."""


class Encoder(nn.Module):
    """Tokens -> hidden states.

    A new encoder has random weights; `tercet.nn.folder.load_encoder` reads trained ones.

    Its parts are called by `forward`, except the feed-forward ones: torch's own call looks for
    hooks, which takes a twentieth of a single sentence's time.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        architecture = config.architecture
        self.embeddings: Embeddings = resolve(architecture.embeddings)(config)
        layer = resolve(architecture.layer)
        self.layers = nn.ModuleList(layer(config, number) for number in range(config.layers))
        self.relative_bias = RelativeBias(config) if config.relative_buckets else None
        self.relations: nn.Module | None = None
        if architecture.relations is not None:
            self.relations = resolve(architecture.relations)(config)
        self.final_norm = norm(config) if architecture.final_norm else None
        self.pooler = Pooler(config.width) if config.pooler else None
        self.apply(initialise)
        self._replaced: Forward | None = None

    @contextmanager
    def replaced(self, forward: Forward) -> Iterator[None]:
        """Inside, `forward` replaces the plain layers, except for batches where it returns None."""
        self._replaced = forward
        try:
            yield
        finally:
            self._replaced = None

    def first(self, layers: int) -> Encoder:
        """The encoder without its later layers; what both have is the same memory."""
        shallow = copy(self)
        shallow._modules = dict(self._modules)
        shallow.config = self.config.with_layers(layers)
        shallow.layers = self.layers[:layers]
        return shallow

    @property
    def device(self) -> torch.device:
        return self.embeddings.words.weight.device

    def forward(self, tokens: DeviceTokens, side: SideWeights | None = None) -> Tensor:
        """tokens -> hidden states [total, width], in the order of the tokens.

        side: what a task adds to the projections; only the plain layers compute it
        """
        (hidden,) = self.states(tokens, side, depths=(self.config.layers,))
        return hidden

    def states(
        self, tokens: DeviceTokens, side: SideWeights | None = None, *, depths: Sequence[int]
    ) -> list[Tensor]:
        """The hidden states [total, width] that the encoder would give if it ended after so many
        layers, for each of some depths, the last of them its full depth."""
        if tokens.longest > self.config.max_tokens:
            raise TercetError(
                f"a row has {tokens.longest} tokens; this encoder takes"
                f" {self.config.max_tokens} at most"
            )
        replaced = self._replaced if side is None else None
        if replaced is not None and (states := replaced(tokens, depths)) is not None:
            return states
        states = []
        hidden = self.embeddings.forward(tokens)
        inputs = AttentionInputs.prepare(
            tokens,
            bias=self._bias(tokens),
            dtype=compute_dtype(self.embeddings.words.weight),
            head_width=self.config.width // self.config.heads,
            varlen=self.config.architecture.varlen,
            relations=self.relations,
        )
        for number, layer in enumerate(self.layers):
            beside = side.of_layer(number) if side is not None else None
            added = () if beside is None else (beside,)
            hidden = layer.forward(hidden, inputs, *added)
            if number + 1 in depths:
                states.append(self._finish(hidden, tokens))
        return states

    def _finish(self, hidden: Tensor, tokens: DeviceTokens) -> Tensor:
        """Hidden states after a layer, as the encoder gives them after its last."""
        if self.final_norm is not None:
            hidden = self.final_norm.forward(hidden)
        places = tokens.plan.places
        return hidden if places is None else hidden.index_select(0, places)

    def _bias(self, tokens: DeviceTokens) -> Tensor | None:
        if self.relative_bias is None or not tokens.count:
            return None
        span = max(block.length for block in tokens.plan.blocks)
        bias: Tensor = self.relative_bias(span)
        return bias


class Embeddings(nn.Module):
    """Word, position and, where the encoder has them, token type embeddings.

    Where they are narrower than the encoder, as ELECTRA's may be, a linear layer widens them.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.first_position = config.first_position
        width = config.words_width
        self.words = nn.Embedding(config.vocabulary, width)
        self.positions = nn.Embedding(config.positions, width)
        self.types = nn.Embedding(config.token_types, width) if config.token_types else None
        self.norm = nn.LayerNorm(width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.widen = nn.Linear(width, config.width) if width != config.width else None

    def forward(self, tokens: DeviceTokens) -> Tensor:
        """tokens -> [total, width], in the order of the attention plan."""
        order = tokens.plan.order
        ids, positions, types = (
            indices if order is None else indices.index_select(0, order)
            for indices in (tokens.ids, tokens.positions, tokens.types)
        )
        if self.first_position:
            positions = positions + self.first_position
        summed = self.words.forward(ids) + self.positions.forward(positions)
        if self.types is not None:
            # RoBERTa's only type is that of all tokens, whatever a tokenizer says.
            is_only = self.types.num_embeddings == 1
            summed = summed + (self.types.weight[0] if is_only else self.types.forward(types))
        embedded = self.dropout.forward(self.norm.forward(summed))
        return embedded if self.widen is None else self.widen.forward(embedded)


class Layer(nn.Module):
    """Attention and feed-forward, each followed by dropout, a residual and a norm."""

    def __init__(self, config: EncoderConfig, number: int = 0) -> None:
        super().__init__()
        self.attention = SelfAttention(
            width=config.width, heads=config.heads, dropout=config.attention_dropout
        )
        self.attention_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.width, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, hidden: Tensor, inputs: AttentionInputs, side: SideLayer | None = None
    ) -> Tensor:
        """hidden [total, width] -> [total, width]."""
        attended = self.attention.forward(hidden, inputs, side)
        hidden = self.attention_norm.forward(add(hidden, self.dropout.forward(attended)))
        expanded = self.feed_forward(hidden, side)
        return self.feed_forward_norm.forward(add(hidden, self.dropout.forward(expanded)))


class FeedForward(nn.Module):
    """Expand, activate, contract: [total, width] -> [total, width]."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.activation: Activation = config.activation
        self.expand = nn.Linear(config.width, config.feed_forward)
        self.contract = nn.Linear(config.feed_forward, config.width)

    def forward(self, hidden: Tensor, side: SideLayer | None = None) -> Tensor:
        if side is None:
            return self.contract.forward(self.neurons(hidden))
        neurons = self._activate(project(self.expand, hidden, side.expand))
        return project(self.contract, neurons, side.contract)

    def neurons(self, hidden: Tensor) -> Tensor:
        """The activated neurons: [total, width] -> [total, feed_forward]."""
        return self._activate(self.expand.forward(hidden))

    def _activate(self, expanded: Tensor) -> Tensor:
        return activate(expanded, self.activation)


class Pooler(nn.Module):
    """The encoder's own pooler: first hidden state of each row [n, width] -> [n, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, first: Tensor) -> Tensor:
        return torch.tanh(self.dense(first))


def norm(config: EncoderConfig) -> nn.LayerNorm:
    """A norm of hidden states."""
    return nn.LayerNorm(config.width, eps=config.norm_eps, bias=config.norm_bias)


def activate(expanded: Tensor, activation: Activation) -> Tensor:
    """Apply an activation function by its name in config.json; without gradients in place."""
    in_place = not torch.is_grad_enabled()
    if activation == "relu":
        return F.relu(expanded, inplace=in_place)
    approximate = "tanh" if activation == "gelu_new" else "none"
    if in_place:
        # A second tensor of this size is more than malloc keeps: it would be new pages every time.
        activated: Tensor = torch.ops.aten.gelu_(expanded, approximate=approximate)
        return activated
    return F.gelu(expanded, approximate=approximate)


def add(hidden: Tensor, added: Tensor) -> Tensor:
    """Their sum; without gradients in the memory of `added`, unless autocast made that narrower."""
    if torch.is_grad_enabled() or added.dtype != hidden.dtype:
        return hidden + added
    return added.add_(hidden)


def initialise(module: nn.Module) -> None:
    """Initialise weights as BERT does."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=_INITIAL_SPREAD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The type of what linear layers return, with or without autocast."""
    device = weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
