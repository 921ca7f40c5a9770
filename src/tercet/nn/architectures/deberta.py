"""DeBERTa-v2 and v3: BERT's layers with disentangled attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from tercet.nn.architectures.bert import BERT
from tercet.nn.architectures.record import Architecture, EncoderConfig, Epsilon

Comparison = Literal["c2p", "p2c"]


class DebertaConfig(EncoderConfig):
    """The shape of a DeBERTa-v2 or v3."""

    model_type: ClassVar[str] = "deberta-v2"
    absent: ClassVar[Mapping[str, object]] = {"compares": False, "adds_positions": True}

    pooler: bool = False
    compares: Literal[True] = Field(True, alias="relative_attention", description="true")
    adds_positions: Literal[False] = Field(
        False, alias="position_biased_input", description="false"
    )
    token_types: int = Field(0, alias="type_vocab_size", description="a whole number from 0", ge=0)
    embedding_width: int | None = Field(
        None, alias="embedding_size", description="a whole number above 0", gt=0
    )
    norm_eps: Epsilon = Field(1e-7, alias="layer_norm_eps")
    buckets: int = Field(-1, alias="position_buckets", description="a whole number")
    """Buckets of distance in each direction; below 1: one per distance."""
    farthest: int = Field(-1, alias="max_relative_positions", description="a whole number")
    """The greatest distance; below 1: the number of positions."""
    comparisons: list[Comparison] = Field(
        default_factory=list, alias="pos_att_type", description="a list of c2p and p2c"
    )
    """c2p: words with distances; p2c: distances with words."""
    shares_projections: bool = Field(False, alias="share_att_key", description="true or false")
    """Whether distances are projected by the words' projections."""
    table_norm: str = Field("none", alias="norm_rel_ebd", description="layer_norm or none")

    @field_validator("comparisons", mode="before")
    @classmethod
    def _split(cls, value: object) -> Any:
        if isinstance(value, str):
            return [part.strip() for part in value.lower().split("|")]
        return [] if value is None else value

    @property
    def reach(self) -> int:
        """The greatest distance."""
        return self.farthest if self.farthest > 0 else self.positions

    @property
    def table_rows(self) -> int:
        """Rows of the table of distances."""
        return 2 * (self.buckets if self.buckets > 0 else self.reach)

    @property
    def has_table_norm(self) -> bool:
        return "layer_norm" in self.table_norm.lower()


DEBERTA = Architecture(
    model_type=DebertaConfig.model_type,
    class_name="DebertaV2Model",
    config=DebertaConfig,
    tensors={
        **{
            ours: theirs
            for ours, theirs in BERT.tensors.items()
            if ours not in ("pooler.dense", "embeddings.positions")
        },
        "embeddings.widen": ("embeddings.embed_proj",),
        "relations.table": ("encoder.rel_embeddings",),
        "relations.norm": ("encoder.LayerNorm",),
        "layers.{}.attention.qkv": (
            "encoder.layer.{}.attention.self.query_proj",
            "encoder.layer.{}.attention.self.key_proj",
            "encoder.layer.{}.attention.self.value_proj",
        ),
        "layers.{}.attention.distance_keys": ("encoder.layer.{}.attention.self.pos_key_proj",),
        "layers.{}.attention.distance_queries": ("encoder.layer.{}.attention.self.pos_query_proj",),
    },
    prefix="deberta.",
    ignored=(
        *("cls.", "lm_head.", "lm_predictions.", "mask_predictions.", "qa_outputs."),
        *("classifier.", "pooler.", "embeddings.position_embeddings", "embeddings.position_ids"),
    ),
    required=(("conv_kernel_size", 0), ("attention_head_size", None)),
    embeddings="tercet.nn.disentangled:DisentangledEmbeddings",
    layer="tercet.nn.disentangled:DisentangledLayer",
    relations="tercet.nn.disentangled:Distances",
    onnx="tercet.nn.onnx.disentangled:DisentangledWriter",
)
