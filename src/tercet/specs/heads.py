"""Heads: vectors to the numbers that an objective reads."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tercet.specs.base import Activation, Count, Feature, Share, Spec


class MlpHeadSpec(Spec):
    kind: Literal["mlp"] = "mlp"
    hidden: list[Count] = Field(default_factory=list)
    """Widths of hidden layers; none makes it one linear layer."""
    activation: Activation = "relu"
    dropout: Share = 0.1
    """Before each linear layer."""


class FeatureHeadSpec(Spec):
    kind: Literal["features"] = "features"
    features: Annotated[list[Feature], Field(min_length=1)]
    """What of the two vectors is laid side by side."""
    hidden: list[Count] = Field(default_factory=list)
    activation: Activation = "relu"
    dropout: Share = 0.1


class CosineHeadSpec(Spec):
    kind: Literal["cosine"] = "cosine"
    projection: bool = False
    """A linear layer of the vectors' own width before the cosine."""
    projection_width: Count | None = None
    """Of that layer, where it differs."""
    dropout: Share = 0.0
    """Before the projection."""

    @model_validator(mode="after")
    def _projects(self) -> Self:
        if self.projection_width is not None and not self.projection:
            raise ValueError("`projection_width` needs `projection = true`")
        return self


HeadSpec = Annotated[MlpHeadSpec | FeatureHeadSpec | CosineHeadSpec, Field(discriminator="kind")]
