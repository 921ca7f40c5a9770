"""Which neurons of an encoder are too loud for 8 bits.

A few neurons of each feed-forward part answer dozens of times as loudly as the rest, whatever the
sentence. One step of 8 bits would have to be that much larger for all; apart, they cost little.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tercet.data.examples import read_texts
from tercet.data.sample import write_sample
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.text.tokenizer import Tokenizer

# One neuron of so many is kept apart.
SHARE = 192
SENTENCES = 32
TOKENS = 64


def loud_neurons(encoder: Encoder, tokenizer: Tokenizer) -> list[NDArray[np.int64]]:
    """Of each layer the feed-forward neurons that are loudest on the project's own sentences."""
    texts = _sentences()
    tokens = tokenizer.encode(texts, max_tokens=min(TOKENS, encoder.config.max_tokens))
    loudest = [torch.zeros(encoder.config.feed_forward) for _ in encoder.layers]
    hooks = [
        layer.get_submodule("feed_forward.contract").register_forward_pre_hook(
            partial(_listen, peak)
        )
        for layer, peak in zip(encoder.layers, loudest, strict=True)
    ]
    try:
        with torch.inference_mode():
            encoder(DeviceTokens.from_host(tokens, encoder.device))
    finally:
        for hook in hooks:
            hook.remove()
    count = encoder.config.feed_forward // SHARE
    return [np.sort(peak.topk(count).indices.numpy()) for peak in loudest]


def _listen(peak: Tensor, _: nn.Module, given: tuple[Tensor, ...]) -> None:
    torch.maximum(peak, given[0].abs().amax(dim=0).cpu(), out=peak)


def _sentences() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=SENTENCES)
        files = {"ids-sst-train.csv": "sentence", "quora-train.csv": "sentence1"}
        columns = [read_texts(Path(folder) / name, [text])[0] for name, text in files.items()]
    return [text for column in columns for text in column]
