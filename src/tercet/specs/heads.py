"""Heads: vectors to the outputs that an objective reads."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from tercet.specs.base import Activation, Count, Feature, Interval, Mode, Share, Spec
from tercet.specs.parts import Part, declare, of_kind
from tercet.specs.registry import Registry

HEADS: Registry[type[HeadSpec]] = Registry("head")

Reads = Literal["vectors", "both-orders", "hidden-states"]


class HeadSpec(Part):
    """A kind of head.

    Its implementation is a `torch.nn.Module` made with `width` (of the vectors), `outputs` (what
    the objective reads) and the keys of the recipe. With `to_onnx` it can be exported.
    """

    registry = HEADS
    modes: ClassVar[tuple[Mode, ...]]
    """The modes that it fits."""
    reads: ClassVar[Reads] = "vectors"
    """vectors: one per sentence, two in mode `bi`; both-orders: of a pair encoded as (a, b) and as
    (b, a); hidden-states: of all tokens, and the tokens."""
    takes_shared: ClassVar[bool] = False
    """Whether shared layers may come first."""
    keeps_exemplars: ClassVar[bool] = False
    """Whether it compares with labelled training sentences; these need classes."""
    only_output: ClassVar[bool] = False
    """Whether it gives one number and no more."""
    bounds: ClassVar[Interval | None] = None
    """The lowest and the highest number that it can give; None: any."""

    @property
    def narrows(self) -> bool:
        """Whether its outputs can be computed from the first numbers of vectors alone."""
        return False

    def input_width(self, width: int) -> int:
        """Numbers per row that its first layer reads, from vectors of a width."""
        return width

    def with_hidden(self, hidden: list[int]) -> Self:
        """The same with hidden layers of other widths, where it has any."""
        has_hidden = bool(getattr(self, "hidden", None))
        return self.model_copy(update={"hidden": hidden}) if has_hidden else self


Head = Annotated[SerializeAsAny[HeadSpec], of_kind(HEADS)]


@declare
class MlpHeadSpec(HeadSpec):
    """Linear layers on the vector of a sentence, or of a pair encoded jointly."""

    modes = ("single", "cross")
    takes_shared = True
    implementation = "tercet.heads.mlp:MlpHead"

    kind: Literal["mlp"] = "mlp"
    normalise: bool = False
    """Scale vectors to length 1 first, so that only their direction counts. Example: `true`."""
    hidden: list[Count] = Field(default_factory=list)
    """Widths of hidden layers; default: none, which makes it one linear layer. Example: `[256]`."""
    activation: Activation = "relu"
    """Activation after each hidden layer. Example: `"gelu"`."""
    dropout: Share = 0.1
    """Dropout before each linear layer. Example: `0.3`."""


@declare
class FeatureHeadSpec(HeadSpec):
    """Linear layers on features of two vectors."""

    modes = ("bi",)
    takes_shared = True
    implementation = "tercet.heads.features:FeatureHead"

    kind: Literal["features"] = "features"
    normalise: bool = False
    """Scale both vectors to length 1 first, so that only their directions count. Example:
    `true`."""
    features: Annotated[list[Feature], Field(min_length=1)]
    """What is computed from the two vectors and concatenated. Example: `["absdiff", "product"]`."""
    hidden: list[Count] = Field(default_factory=list)
    """Widths of hidden layers; default: none, which makes it one linear layer. Example: `[128]`."""
    activation: Activation = "relu"
    """Activation after each hidden layer. Example: `"tanh"`."""
    dropout: Share = 0.1
    """Dropout before each linear layer. Example: `0.2`."""

    def input_width(self, width: int) -> int:
        return sum(1 if name in ("dot", "cosine") else width for name in self.features)


@declare
class CosineHeadSpec(HeadSpec):
    """The cosine of two vectors, optionally after one linear layer."""

    modes = ("bi",)
    only_output = True
    bounds = (-1.0, 1.0)
    implementation = "tercet.heads.cosine:CosineHead"

    kind: Literal["cosine"] = "cosine"
    projection: bool = False
    """A linear layer before the cosine, as wide as the vectors. Example: `true`."""
    projection_width: Count | None = None
    """Width of that layer, where it differs. Example: `128`."""
    dropout: Share = 0.0
    """Dropout before the projection. Example: `0.1`."""

    @property
    def narrows(self) -> bool:
        return not self.projection

    @model_validator(mode="after")
    def _projects(self) -> Self:
        if self.projection_width is not None and not self.projection:
            raise ValueError("`projection_width` needs `projection = true`")
        return self


@declare
class DensePairHeadSpec(HeadSpec):
    """A pair encoded jointly in both orders, one linear layer for each order."""

    modes = ("cross",)
    reads = "both-orders"
    takes_shared = True
    implementation = "tercet.heads.dense_pair:DensePairHead"

    kind: Literal["dense-pair"] = "dense-pair"
    difference: bool = True
    """A third linear layer, on the difference of the two orders' vectors. Example: `false`."""
    activation: Activation | None = None
    """Activation before the final linear layer. Example: `"relu"`."""
    dropout: Share = 0.1
    """Dropout before the linear layer of each order. Example: `0.3`."""


@declare
class LayersHeadSpec(HeadSpec):
    """Fresh encoder layers on the hidden states, then one linear layer on the first token."""

    modes = ("single", "cross")
    reads = "hidden-states"
    implementation = "tercet.heads.layers:LayersHead"

    kind: Literal["layers"] = "layers"
    layers: Count
    """Number of layers. Example: `2`."""
    dropout: Share = 0.1
    """Dropout before the linear layer. Example: `0.2`."""


@declare
class ExemplarHeadSpec(HeadSpec):
    """One linear layer on the cosines to labelled training sentences, and on their labels."""

    modes = ("single",)
    keeps_exemplars = True
    implementation = "tercet.heads.exemplars:ExemplarHead"

    kind: Literal["exemplars"] = "exemplars"
    count: Count
    """Training sentences whose vectors are stored, the same number of each class. Example:
    `100`."""


@declare
class NearestHeadSpec(HeadSpec):
    """The cosine to the nearest labelled training sentence of each class."""

    modes = ("single",)
    keeps_exemplars = True
    implementation = "tercet.heads.nearest:NearestHead"

    kind: Literal["nearest"] = "nearest"
    count: Count
    """Training sentences whose vectors are stored, at most. Example: `500`."""


MASKED_WORDS = "masked-words"
"""The name of the shared layers of masked language modelling: all tasks use the same."""


class SharedSpec(Spec):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    """Heads that give the same name share the layers. Example: `"pairs"`."""
    hidden: Annotated[list[Count], Field(min_length=1)]
    """Widths of the layers. Example: `[256, 128]`."""
    activation: Activation = "relu"
    """Activation after each layer. Example: `"gelu"`."""
    dropout: Share = 0.0
    """Dropout before each layer. Example: `0.1`."""

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name == MASKED_WORDS:
            raise ValueError(f"{name!r} is the name of the layers of `masked-language-model`")
        return name
