"""Depths: after which layers of the encoder a network answers, besides the last."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from tercet.specs.base import Count, Positive, Spec


class DepthsSpec(Spec):
    """Depths at which the network answers besides its full depth. Each has heads, and with `pooling
    = "pooler"` a pooler, of its own; one pass of the encoder serves all of them."""

    layers: Annotated[list[Count], Field(min_length=1)]
    """Number of layers of each depth; the full depth may be listed too. Example:
    `[2, 3, 4]`."""
    hidden: Annotated[list[Count], Field(min_length=1)] | None = None
    """Widths of the hidden layers of heads and shared layers at these depths, where those of the
    full depth have any; default: the same. Example: `[128]`."""
    weight: Positive = 1.0
    """Factor on the mean of the losses of these depths; that of the full depth is 1. Example:
    `0.5`."""
    agreement: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    """Share of the distance from the full depth's answers in the loss of each depth; labels and
    teachers have the rest. Example: `0.8`."""

    @field_validator("layers")
    @classmethod
    def _layers_rise(cls, layers: list[int]) -> list[int]:
        if layers != sorted(set(layers)):
            raise ValueError(f"{layers} must rise")
        return layers


def _as_block(value: Any) -> Any:
    return {"layers": value} if isinstance(value, list) else value


Depths = Annotated[DepthsSpec, BeforeValidator(_as_block)]
"""A list alone stands for `layers`."""
