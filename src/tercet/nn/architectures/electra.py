"""ELECTRA: BERT's layers without a pooler; its embeddings may be narrower than its layers."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tercet.nn.architectures.bert import BERT
from tercet.nn.architectures.record import Architecture, Count, EncoderConfig


class ElectraConfig(EncoderConfig):
    """The shape of an ELECTRA."""

    model_type: ClassVar[str] = "electra"

    pooler: bool = False
    token_types: Count = Field(2, alias="type_vocab_size")
    embedding_width: Count | None = Field(
        128, alias="embedding_size", description="a whole number above 0"
    )


ELECTRA = Architecture(
    model_type=ElectraConfig.model_type,
    class_name="ElectraModel",
    config=ElectraConfig,
    tensors={
        **{ours: theirs for ours, theirs in BERT.tensors.items() if ours != "pooler.dense"},
        "embeddings.widen": ("embeddings_project",),
    },
    prefix="electra.",
    ignored=(
        *("discriminator_predictions.", "generator_predictions.", "generator_lm_head."),
        *("classifier.", "qa_outputs.", "sequence_summary.", "embeddings.position_ids"),
    ),
    fused=True,
    cuda_graphs=True,
    varlen=True,
    onnx="tercet.nn.onnx.encoder:Writer",
)
