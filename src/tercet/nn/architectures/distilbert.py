"""DistilBERT: BERT's layers without token types and pooler.

In training its attention drops outputs as BERT's does, which `transformers` leaves out.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tercet.nn.architectures.record import (
    Activation,
    Architecture,
    Count,
    EncoderConfig,
    Epsilon,
    Layers,
    Rate,
)


class DistilbertConfig(EncoderConfig):
    """The shape of a DistilBERT."""

    model_type: ClassVar[str] = "distilbert"

    pooler: bool = False
    width: Count = Field(alias="dim")
    layers: Layers = Field(alias="n_layers")
    heads: Count = Field(alias="n_heads")
    feed_forward: Count = Field(alias="hidden_dim")
    norm_eps: Epsilon = 1e-12
    dropout: Rate = Field(0.1, alias="dropout")
    attention_dropout: Rate = Field(0.1, alias="attention_dropout")
    activation: Activation = Field(
        "gelu", alias="activation", description="one of gelu, gelu_new, relu"
    )


DISTILBERT = Architecture(
    model_type=DistilbertConfig.model_type,
    class_name="DistilBertModel",
    config=DistilbertConfig,
    tensors={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.positions": ("embeddings.position_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
        "layers.{}.attention.qkv": (
            "transformer.layer.{}.attention.q_lin",
            "transformer.layer.{}.attention.k_lin",
            "transformer.layer.{}.attention.v_lin",
        ),
        "layers.{}.attention.output": ("transformer.layer.{}.attention.out_lin",),
        "layers.{}.attention_norm": ("transformer.layer.{}.sa_layer_norm",),
        "layers.{}.feed_forward.expand": ("transformer.layer.{}.ffn.lin1",),
        "layers.{}.feed_forward.contract": ("transformer.layer.{}.ffn.lin2",),
        "layers.{}.feed_forward_norm": ("transformer.layer.{}.output_layer_norm",),
    },
    prefix="distilbert.",
    ignored=(
        *("vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "pre_classifier."),
        *("classifier.", "qa_outputs.", "embeddings.position_ids"),
    ),
    fused=True,
    cuda_graphs=True,
    varlen=True,
    onnx="tercet.nn.onnx.encoder:Writer",
)
