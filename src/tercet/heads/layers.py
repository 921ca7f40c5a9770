"""A head with encoder layers of its own; it reads hidden states and has no ONNX graph."""

from __future__ import annotations

from torch import Tensor, nn

from tercet.nn.architectures.record import EncoderConfig
from tercet.nn.attention import AttentionInputs
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Layer, compute_dtype, initialise


class LayersHead(nn.Module):
    """Fresh encoder layers on hidden states, then one linear layer on the first token."""

    def __init__(
        self, *, width: int, outputs: int, config: EncoderConfig, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self._head_width = config.width // config.heads
        self.layers = nn.ModuleList(Layer(config) for _ in range(layers))
        self.layers.apply(initialise)
        self.dropout = nn.Dropout(dropout)
        self.final = nn.Linear(width, outputs)

    def forward(self, hidden: Tensor, tokens: DeviceTokens) -> Tensor:
        """hidden [total, width] in the order of the tokens -> [used, outputs]"""
        plan = tokens.plan
        if plan.order is not None:
            hidden = hidden.index_select(0, plan.order)
        inputs = AttentionInputs.prepare(
            tokens, bias=None, dtype=compute_dtype(self.final.weight), head_width=self._head_width
        )
        for layer in self.layers:
            hidden = layer(hidden, inputs)
        if plan.places is not None:
            hidden = hidden.index_select(0, plan.places)
        first = hidden.index_select(0, tokens.offsets[:-1])[: tokens.used]
        outputs: Tensor = self.final(self.dropout(first))
        return outputs
