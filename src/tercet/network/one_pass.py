"""One pass of the encoder for all depths of a network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder


class OnePass:
    """Encodes each batch once for several depths of a network."""

    def __init__(self, encoder: Encoder, depths: Sequence[int]) -> None:
        self._encoder = encoder
        self._depths = depths
        self._known: list[tuple[DeviceTokens, dict[int, Tensor]]] = []

    def states(self, tokens: DeviceTokens, *, depth: int) -> Tensor:
        """The hidden states at a depth, [total, width]."""
        for known, states in self._known:
            if known is tokens:
                return states[depth]
        found = self._encoder.states(tokens, depths=self._depths)
        self._known.append((tokens, dict(zip(self._depths, found, strict=True))))
        return self._known[-1][1][depth]
