"""Tokens to hidden states, vectors and predictions."""

from tercet.nn.config import EncoderConfig, read_config
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.folder import load_encoder, save_encoder
from tercet.nn.pooling import Pooling, pool

__all__ = [
    "DeviceTokens",
    "Encoder",
    "EncoderConfig",
    "Pooling",
    "load_encoder",
    "pool",
    "read_config",
    "save_encoder",
]
