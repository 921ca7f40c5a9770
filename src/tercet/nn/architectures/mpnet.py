"""MPNet: learned positions and a relative position bias, no token types, post-norm layers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tercet.nn.architectures.record import Architecture, EncoderConfig, TokenId

# Half of the buckets is for each direction; in it, half is for exact distances.
Buckets = Annotated[int, Field(ge=4, description="a whole number from 4")]


class MpnetConfig(EncoderConfig):
    """The shape of an MPNet."""

    model_type: ClassVar[str] = "mpnet"

    pad_id: TokenId = Field(1, alias="pad_token_id")
    relative_buckets: Buckets = Field(32, alias="relative_attention_num_buckets")


MPNET = Architecture(
    model_type=MpnetConfig.model_type,
    class_name="MPNetModel",
    config=MpnetConfig,
    tensors={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.positions": ("embeddings.position_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
        "relative_bias.table": ("encoder.relative_attention_bias",),
        "layers.{}.attention.qkv": (
            "encoder.layer.{}.attention.attn.q",
            "encoder.layer.{}.attention.attn.k",
            "encoder.layer.{}.attention.attn.v",
        ),
        "layers.{}.attention.output": ("encoder.layer.{}.attention.attn.o",),
        "layers.{}.attention_norm": ("encoder.layer.{}.attention.LayerNorm",),
        "layers.{}.feed_forward.expand": ("encoder.layer.{}.intermediate.dense",),
        "layers.{}.feed_forward.contract": ("encoder.layer.{}.output.dense",),
        "layers.{}.feed_forward_norm": ("encoder.layer.{}.output.LayerNorm",),
        "pooler.dense": ("pooler.dense",),
    },
    prefix="mpnet.",
    # transformers fixes MPNet's padding index at 1, whatever config.json says.
    first_position=2,
    pair_separators=2,
    fused=True,
    cuda_graphs=True,
    # The variable-length kernel takes no bias.
    varlen=False,
    onnx="tercet.nn.onnx.encoder:Writer",
)
