"""RoBERTa, XLM-RoBERTa and CamemBERT: BERT's layers, positions counted from behind the padding id,
one token type at most."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from tercet.nn.architectures.bert import BERT
from tercet.nn.architectures.record import Count, EncoderConfig, TokenId


class RobertaConfig(EncoderConfig):
    """The shape of a RoBERTa."""

    model_type: ClassVar[str] = "roberta"

    token_types: Count = Field(2, alias="type_vocab_size")
    pad_id: TokenId = Field(1, alias="pad_token_id")

    @property
    def first_position(self) -> int:
        return self.pad_id + 1


class XlmRobertaConfig(RobertaConfig):
    """The shape of an XLM-RoBERTa."""

    model_type: ClassVar[str] = "xlm-roberta"


class CamembertConfig(RobertaConfig):
    """The shape of a CamemBERT."""

    model_type: ClassVar[str] = "camembert"


ROBERTA = replace(
    BERT,
    model_type=RobertaConfig.model_type,
    class_name="RobertaModel",
    config=RobertaConfig,
    prefix="roberta.",
    pair_separators=2,
)
XLM_ROBERTA = replace(
    ROBERTA,
    model_type=XlmRobertaConfig.model_type,
    class_name="XLMRobertaModel",
    config=XlmRobertaConfig,
)
CAMEMBERT = replace(
    ROBERTA,
    model_type=CamembertConfig.model_type,
    class_name="CamembertModel",
    config=CamembertConfig,
)
