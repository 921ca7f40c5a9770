"""ModernBERT: rotary positions, pre-norm layers with gated feed-forward, few or no biases.

Most of its layers attend to near tokens only.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tercet.nn.architectures.record import (
    MOST_LAYERS,
    Activation,
    Architecture,
    Count,
    EncoderConfig,
    Epsilon,
    Rate,
    TokenId,
)

LayerType = Literal["full_attention", "sliding_attention"]
Rotations = dict[LayerType, dict[str, Any]]
_OLD_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}
_THETAS = {"full_attention": 160_000.0, "sliding_attention": 10_000.0}


class ModernbertConfig(EncoderConfig):
    """The shape of a ModernBERT."""

    model_type: ClassVar[str] = "modernbert"

    pooler: bool = False
    positions: Count = Field(8192, alias="max_position_embeddings")
    pad_id: TokenId = Field(50283, alias="pad_token_id")
    activation: Activation = Field(
        "gelu", alias="hidden_activation", description="one of gelu, gelu_new, relu"
    )
    norm_eps: Epsilon = Field(1e-5, alias="norm_eps")
    norm_bias: bool = Field(False, alias="norm_bias", description="true or false")
    attention_bias: bool = Field(False, alias="attention_bias", description="true or false")
    feed_forward_bias: bool = Field(False, alias="mlp_bias", description="true or false")
    embedding_dropout: Rate = Field(0.0, alias="embedding_dropout")
    dropout: Rate = Field(0.0, alias="mlp_dropout")
    attention_dropout: Rate = Field(0.0, alias="attention_dropout")
    window: int = Field(128, alias="local_attention", ge=2, description="a whole number from 2")
    """Tokens that a local layer sees, half of them on each side."""
    layer_types: list[LayerType] = Field(
        alias="layer_types",
        description="a list of full_attention and sliding_attention, one per layer",
    )
    rotations: Rotations = Field(
        alias="rope_parameters", description="the default rotation of each type of layer"
    )

    @model_validator(mode="before")
    @classmethod
    def _read_older_keys(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Older releases of `transformers` wrote a number of layers and two angles."""
        source = values.get("source", {})
        every, layers = source.get("global_attn_every_n_layers", 3), values.get("layers", 0)
        filled = dict(values)
        is_known = isinstance(layers, int) and isinstance(every, int) and every > 0
        if filled.get("layer_types") is None and is_known and layers <= MOST_LAYERS:
            filled["layer_types"] = [
                "sliding_attention" if number % every else "full_attention"
                for number in range(layers)
            ]
        given = filled.get("rotations") or {}
        if isinstance(given, dict):
            filled["rotations"] = {kind: _rotation(kind, given, source) for kind in _THETAS}
        return filled

    @field_validator("layer_types")
    @classmethod
    def _one_per_layer(cls, value: list[LayerType], info: ValidationInfo) -> list[LayerType]:
        if len(value) != info.data.get("layers"):
            raise ValueError("one per layer")
        return value

    @field_validator("rotations")
    @classmethod
    def _default_rotations(cls, value: Rotations) -> Rotations:
        for rotation in value.values():
            is_number = isinstance(rotation["rope_theta"], int | float)
            if rotation["rope_type"] != "default" or not is_number or rotation["rope_theta"] <= 0:
                raise ValueError("a default rotation")
        return value

    def with_layers(self, layers: int) -> EncoderConfig:
        return self.replace(layers=layers, layer_types=self.layer_types[:layers])

    @property
    def expand_width(self) -> int:
        return 2 * self.feed_forward

    def angle(self, kind: LayerType) -> float:
        """The base of the angles by which layers of a type rotate."""
        return float(self.rotations[kind]["rope_theta"])


def _rotation(kind: str, given: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    theta = source.get(_OLD_THETAS[kind]) or _THETAS[kind]
    return {"rope_type": "default", "rope_theta": theta, **(given.get(kind) or {})}


MODERNBERT = Architecture(
    model_type=ModernbertConfig.model_type,
    class_name="ModernBertModel",
    config=ModernbertConfig,
    tensors={
        "embeddings.words": ("embeddings.tok_embeddings",),
        "embeddings.norm": ("embeddings.norm",),
        # The first layer has no norm before its attention.
        "layers.{}.attention_norm": ("layers.{}.attn_norm",),
        "layers.{}.attention.qkv": ("layers.{}.attn.Wqkv",),
        "layers.{}.attention.output": ("layers.{}.attn.Wo",),
        "layers.{}.feed_forward_norm": ("layers.{}.mlp_norm",),
        "layers.{}.feed_forward.expand": ("layers.{}.mlp.Wi",),
        "layers.{}.feed_forward.contract": ("layers.{}.mlp.Wo",),
        "final_norm": ("final_norm",),
    },
    prefix="model.",
    ignored=("head.", "decoder.", "classifier."),
    required=(("rope_scaling", None),),
    embeddings="tercet.nn.modern:ModernEmbeddings",
    layer="tercet.nn.modern:ModernLayer",
    relations="tercet.nn.modern:Rotary",
    final_norm=True,
    # For layers that see the whole row; local ones take blocks where a row exceeds their window.
    varlen=True,
    onnx="tercet.nn.onnx.modern:ModernWriter",
)
