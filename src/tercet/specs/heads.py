"""Heads: vectors to the numbers that an objective reads."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tercet.specs.base import Activation, Count, Feature, Mode, Share, Spec


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


class DensePairHeadSpec(Spec):
    kind: Literal["dense-pair"] = "dense-pair"
    difference: bool = True
    """A third linear layer, on the difference of the two orders' vectors."""
    activation: Activation | None = None
    """Before the final linear layer."""
    dropout: Share = 0.1


class LayersHeadSpec(Spec):
    kind: Literal["layers"] = "layers"
    layers: Count
    """Fresh layers like the encoder's, on its hidden states."""
    dropout: Share = 0.1
    """Before the linear layer on the first token."""


class ExemplarHeadSpec(Spec):
    kind: Literal["exemplars"] = "exemplars"
    count: Count
    """Training sentences whose vectors are kept, as many of each class."""


class NearestHeadSpec(Spec):
    kind: Literal["nearest"] = "nearest"
    count: Count
    """Training sentences whose vectors are kept: all of them, or that many."""


HeadSpec = Annotated[
    MlpHeadSpec
    | FeatureHeadSpec
    | CosineHeadSpec
    | DensePairHeadSpec
    | LayersHeadSpec
    | ExemplarHeadSpec
    | NearestHeadSpec,
    Field(discriminator="kind"),
]
WITH_EXEMPLARS = (ExemplarHeadSpec, NearestHeadSpec)
FITTING: dict[Mode, tuple[str, ...]] = {
    "single": ("mlp", "layers", "exemplars", "nearest"),
    "bi": ("features", "cosine"),
    "cross": ("mlp", "dense-pair", "layers"),
}
"""The kinds of heads that each mode can have."""
SHARING = ("mlp", "features", "dense-pair")
"""The kinds of heads that shared layers can stand in."""


MASKED_WORDS = "masked-words"
"""The layers of masked language modelling stand among the shared ones: all tasks have one head."""


class SharedSpec(Spec):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    """Heads whose shared layers have the same name share them."""
    hidden: Annotated[list[Count], Field(min_length=1)]
    """Widths of the layers."""
    activation: Activation = "relu"
    """After each."""
    dropout: Share = 0.0
    """Before each."""

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name == MASKED_WORDS:
            raise ValueError(f"{name!r} is the name of the layers of `masked-language-model`")
        return name
