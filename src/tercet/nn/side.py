"""Low-rank side weights: what one task adds to the projections of a frozen encoder (LoRA, Hu et
al., 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tercet.errors import TercetError
from tercet.nn.architectures.record import EncoderConfig


class LowRank(nn.Module):
    """The product of two narrow matrices, added to a linear layer; zero at first."""

    def __init__(self, *, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.empty(rank, inputs))
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs [total, inputs] -> what is added to the layer's outputs [total, outputs]"""
        return F.linear(F.linear(inputs, self.down), self.up)


class SideLayer(nn.Module):
    """The side weights of one layer: of both projections of attention and of feed-forward."""

    def __init__(self, config: EncoderConfig, *, rank: int) -> None:
        super().__init__()
        width, neurons = config.width, config.feed_forward
        self.qkv = LowRank(inputs=width, outputs=3 * width, rank=rank)
        self.output = LowRank(inputs=width, outputs=width, rank=rank)
        self.expand = LowRank(inputs=width, outputs=config.expand_width, rank=rank)
        self.contract = LowRank(inputs=neurons, outputs=width, rank=rank)


class SideWeights(nn.Module):
    """The side weights of a task, for all layers of an encoder or some."""

    def __init__(
        self, config: EncoderConfig, *, rank: int, layers: Sequence[int] | None = None
    ) -> None:
        """layers: numbers from 0; default: all"""
        super().__init__()
        chosen = range(config.layers) if layers is None else layers
        if beyond := [number for number in chosen if number >= config.layers]:
            raise TercetError(
                f"`side.layers` names layer {beyond[0]}; the encoder's layers are numbered from 0 "
                f"to {config.layers - 1}."
            )
        self.layers = nn.ModuleDict(
            {str(number): SideLayer(config, rank=rank) for number in chosen}
        )

    def of_layer(self, number: int) -> SideLayer | None:
        """The side weights of a layer, where it has any."""
        name = str(number)
        if name not in self.layers:
            return None
        layer = self.layers[name]
        assert isinstance(layer, SideLayer)
        return layer


def project(linear: nn.Linear, inputs: Tensor, side: LowRank | None) -> Tensor:
    """A linear layer with what side weights add: [total, inputs] -> [total, outputs]"""
    outputs = linear.forward(inputs)
    return outputs if side is None else outputs + side.forward(inputs)
