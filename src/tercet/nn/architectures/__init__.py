"""The encoder architectures, by config.json's `model_type`; one file each."""

from tercet.nn.architectures.bert import BERT
from tercet.nn.architectures.deberta import DEBERTA
from tercet.nn.architectures.distilbert import DISTILBERT
from tercet.nn.architectures.electra import ELECTRA
from tercet.nn.architectures.modernbert import MODERNBERT
from tercet.nn.architectures.mpnet import MPNET
from tercet.nn.architectures.record import ARCHITECTURES
from tercet.nn.architectures.roberta import CAMEMBERT, ROBERTA, XLM_ROBERTA

for _architecture in (
    *(BERT, MPNET, ROBERTA, XLM_ROBERTA, CAMEMBERT),
    *(DISTILBERT, ELECTRA, MODERNBERT, DEBERTA),
):
    ARCHITECTURES.add(_architecture.model_type, _architecture)
