"""BERT: learned positions, token types, post-norm layers."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tercet.nn.architectures.record import Architecture, Count, EncoderConfig


class BertConfig(EncoderConfig):
    """The shape of a BERT."""

    model_type: ClassVar[str] = "bert"

    token_types: Count = Field(2, alias="type_vocab_size")


BERT = Architecture(
    model_type=BertConfig.model_type,
    class_name="BertModel",
    config=BertConfig,
    tensors={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.positions": ("embeddings.position_embeddings",),
        "embeddings.types": ("embeddings.token_type_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
        "layers.{}.attention.qkv": (
            "encoder.layer.{}.attention.self.query",
            "encoder.layer.{}.attention.self.key",
            "encoder.layer.{}.attention.self.value",
        ),
        "layers.{}.attention.output": ("encoder.layer.{}.attention.output.dense",),
        "layers.{}.attention_norm": ("encoder.layer.{}.attention.output.LayerNorm",),
        "layers.{}.feed_forward.expand": ("encoder.layer.{}.intermediate.dense",),
        "layers.{}.feed_forward.contract": ("encoder.layer.{}.output.dense",),
        "layers.{}.feed_forward_norm": ("encoder.layer.{}.output.LayerNorm",),
        "pooler.dense": ("pooler.dense",),
    },
    prefix="bert.",
    fused=True,
    cuda_graphs=True,
    varlen=True,
    onnx="tercet.nn.onnx.encoder:Writer",
)
