"""The encoder architectures, by config.json's `model_type`; one file each."""

from tercet.nn.architectures.bert import BERT
from tercet.nn.architectures.mpnet import MPNET
from tercet.nn.architectures.record import ARCHITECTURES

for _architecture in (BERT, MPNET):
    ARCHITECTURES.add(_architecture.model_type, _architecture)
