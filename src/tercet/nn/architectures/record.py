"""What an encoder architecture declares: its configuration, its tensor names, its fast paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tercet.errors import TercetError
from tercet.specs.registry import Registry

Activation = Literal["gelu", "gelu_new", "relu"]
# A description completes the sentence "it should be ...".
Count = Annotated[int, Field(gt=0, description="a whole number above 0")]
MOST_LAYERS = 1000
"""Far more than any encoder has; each takes time to make, before weights are looked at."""
Layers = Annotated[
    int, Field(gt=0, le=MOST_LAYERS, description=f"a whole number from 1 to {MOST_LAYERS:,}")
]
TokenId = Annotated[int, Field(ge=0, description="a token id")]
Rate = Annotated[float, Field(ge=0, lt=1, description="a number from 0 and below 1")]
Epsilon = Annotated[float, Field(ge=0, description="a number from 0")]

ARCHITECTURES: Registry[Architecture] = Registry("encoder architecture")


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One encoder architecture.

    model_type: its name in config.json
    class_name: the class of `transformers` that config.json lists under `architectures`
    config: the fields of its encoders, their config.json keys and their defaults
    tensors: our tensor names -> those of `transformers`; several of theirs are concatenated in
        ours. {} is the layer
    prefix: what may precede their names
    ignored: beginnings of their names that are not part of the encoder: heads and buffers
    required: config.json keys with the only value that is supported
    first_position: row of the position table that the first token of a sentence takes
    pair_separators: how many tokens separate the sentences of a joined pair
    embeddings, layer: the modules, as `module:class`; a layer is made of the configuration and its
        number
    relations: the module that tells all layers about distances between tokens, as `module:class`
    final_norm: whether a norm follows the last layer
    fused: whether the Triton kernels of `nn.fused` compute its layers in training
    cuda_graphs: whether training may replay its forward and backward as CUDA graphs
    varlen: whether its attention may take CUDA's variable-length kernel
    onnx: what writes its ONNX graph, as `module:class`; empty where it cannot be exported
    """

    model_type: str
    class_name: str
    config: type[EncoderConfig]
    tensors: Mapping[str, tuple[str, ...]]
    prefix: str
    ignored: tuple[str, ...] = (
        *("cls.", "lm_head.", "qa_outputs.", "classifier."),
        *("embeddings.position_ids", "embeddings.token_type_ids"),
    )
    required: tuple[tuple[str, object], ...] = (
        ("position_embedding_type", "absolute"),
        *(("is_decoder", False), ("add_cross_attention", False)),
    )
    first_position: int = 0
    pair_separators: int = 1
    embeddings: str = "tercet.nn.encoder:Embeddings"
    layer: str = "tercet.nn.encoder:Layer"
    relations: str | None = None
    final_norm: bool = False
    fused: bool = False
    cuda_graphs: bool = False
    varlen: bool = False
    onnx: str = ""
    registry: ClassVar[Registry[Architecture]] = ARCHITECTURES

    def kind_name(self) -> str:
        return self.model_type


class EncoderConfig(BaseModel):
    """The shape of an encoder; an architecture adds its own fields, keys and defaults.

    An alias is a key of config.json; a field without one is neither read nor written there.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        loc_by_alias=False,
    )
    model_type: ClassVar[str]
    absent: ClassVar[Mapping[str, object]] = {}
    """What a missing key of config.json means where it is not the default, by field."""

    vocabulary: Count = Field(alias="vocab_size")
    width: Count = Field(alias="hidden_size")
    embedding_width: Count | None = None
    """Width of the word embeddings where it differs from the encoder's; else None."""
    layers: Layers = Field(alias="num_hidden_layers")
    heads: Count = Field(alias="num_attention_heads")
    feed_forward: Count = Field(alias="intermediate_size")
    positions: Count = Field(512, alias="max_position_embeddings")
    """Rows of the position table, those before the first position included."""
    token_types: int = 0
    """Rows of the token type table; 0 without token types."""
    norm_eps: Epsilon = Field(1e-12, alias="layer_norm_eps")
    norm_bias: bool = True
    """Whether norms add a bias."""
    dropout: Rate = Field(0.1, alias="hidden_dropout_prob")
    attention_dropout: Rate = Field(0.1, alias="attention_probs_dropout_prob")
    pad_id: TokenId = Field(0, alias="pad_token_id")
    relative_buckets: int = 0
    """Rows of the relative position table; 0 without a relative bias."""
    activation: Activation = Field(
        "gelu", alias="hidden_act", description="one of gelu, gelu_new, relu"
    )
    pooler: bool = True
    """Whether the encoder has a pooler of its own."""
    source: dict[str, Any] = Field(default_factory=dict, repr=False)
    """config.json as it was read, so that saving keeps the keys that are not used here."""

    @field_validator("pad_id", mode="before")
    @classmethod
    def _default_pad_id(cls, value: object) -> object:
        return cls.model_fields["pad_id"].default if value is None else value

    @property
    def architecture(self) -> Architecture:
        return ARCHITECTURES[self.model_type]

    @property
    def first_position(self) -> int:
        """Row of the position table that the first token of a sentence takes."""
        return self.architecture.first_position

    @property
    def max_tokens(self) -> int:
        """Tokens of the longest row that the encoder can take."""
        return self.positions - self.first_position

    @property
    def words_width(self) -> int:
        """Width of the word embeddings."""
        return self.embedding_width or self.width

    @property
    def expand_width(self) -> int:
        """Outputs of the first linear layer of feed-forward."""
        return self.feed_forward

    @classmethod
    def config_keys(cls) -> dict[str, str]:
        """The key in config.json of each field that has one."""
        return {name: info.alias for name, info in cls.model_fields.items() if info.alias}

    @classmethod
    def mistake(cls, error: ValidationError, *, names: Mapping[str, str]) -> str:
        """The first mistake as `name is value; it should be ...`; names: of the fields."""
        first = error.errors()[0]
        name = str(first["loc"][0])
        is_missing = first["type"] == "missing" or first["input"] is None
        value = "missing" if is_missing else repr(first["input"])
        right = cls.model_fields[name].description
        return f"{names.get(name, name)} is {value}; it should be {right}"

    def replace(self, **changes: Any) -> EncoderConfig:
        """The same configuration with other values, by field names."""
        try:
            return self.model_validate(dict(self) | changes)
        except ValidationError as error:
            raise TercetError(self.mistake(error, names={})) from None

    def with_layers(self, layers: int) -> EncoderConfig:
        """The configuration of the first layers alone."""
        return self.replace(layers=layers)

    def to_json(self) -> dict[str, Any]:
        """config.json as `transformers` reads it: the source, with our fields over it."""
        values = {key: getattr(self, name) for name, key in self.config_keys().items()}
        fields = {key: value for key, value in values.items() if value is not None}
        names = {"architectures": [self.architecture.class_name], "model_type": self.model_type}
        return self.source | names | fields
