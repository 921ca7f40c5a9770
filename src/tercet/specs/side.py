"""Side weights of a task: a low-rank addition to the encoder, for its texts alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from tercet.specs.base import Count, Spec


class SideSpec(Spec):
    """Low-rank weights (LoRA) that a task adds to the encoder's projections. Only its own texts are
    encoded with them, in a pass of their own."""

    rank: Count = 8
    """Width of the two matrices whose product is added to each projection. Example: `16`."""
    layers: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None
    """Numbers of the layers that get them, from 0; default: all. Example: `[4, 5]`."""

    @field_validator("layers")
    @classmethod
    def _named_once(cls, layers: list[int] | None) -> list[int] | None:
        if layers is not None and len(set(layers)) < len(layers):
            raise ValueError(f"{layers} names a layer twice")
        return layers
