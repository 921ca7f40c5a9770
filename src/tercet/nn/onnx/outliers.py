"""The outlier neurons of an encoder, which 8-bit export keeps in fp32.

A few neurons of each feed-forward part answer dozens of times as strongly as the rest, whatever the
sentence. One 8-bit step for all would have to be that much larger; kept apart, they cost little.
The answers of the rest have the same extremes in all sentences, so their step is chosen at export.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.examples import read_texts
from tercet.data.sample import write_sample
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder, FeedForward
from tercet.text.tokenizer import Tokenizer

# One neuron in this many is an outlier.
SHARE = 192
SENTENCES = 128
TOKENS = 64


@dataclass(frozen=True, slots=True)
class Outliers:
    """The outliers among the feed-forward neurons of a layer.

    neurons: those that stay in fp32, int64 [neurons]
    step: the size of one of the 256 steps to which the answers of the others are rounded
    zero: the step that represents 0
    """

    neurons: NDArray[np.int64]
    step: float
    zero: int


def find_outliers(encoder: Encoder, tokenizer: Tokenizer) -> list[Outliers]:
    """The outliers of each layer, measured on the project's own sentences."""
    texts = _sentences()
    tokens = tokenizer.encode(texts, max_tokens=min(TOKENS, encoder.config.max_tokens))
    ranges: list[tuple[Tensor, Tensor]] = []
    hooks = [
        layer.get_submodule("feed_forward").register_forward_pre_hook(partial(_measure, ranges))
        for layer in encoder.layers
    ]
    try:
        with torch.inference_mode():
            encoder(DeviceTokens.from_host(tokens, encoder.device))
    finally:
        for hook in hooks:
            hook.remove()
    return [_outliers(low.cpu().numpy(), high.cpu().numpy()) for low, high in ranges]


def _measure(
    ranges: list[tuple[Tensor, Tensor]], part: FeedForward, inputs: tuple[Tensor, ...]
) -> None:
    low, high = part.neurons(inputs[0]).float().aminmax(dim=0)
    ranges.append((low, high))


def _outliers(low: NDArray[np.float32], high: NDArray[np.float32]) -> Outliers:
    """low, high: the least and greatest answer of each neuron, [neurons]."""
    order = np.argsort(np.maximum(high, -low), kind="stable")
    usual, outlying = np.split(order, [len(order) - len(order) // SHARE])
    least, greatest = min(float(low[usual].min()), 0.0), max(float(high[usual].max()), 0.0)
    step = (greatest - least) / 255 or 1.0
    return Outliers(np.sort(outlying), step, round(-least / step))


def _sentences() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=SENTENCES)
        files = {"ids-sst-train.csv": "sentence", "quora-train.csv": "sentence1"}
        columns = [read_texts(Path(folder) / name, [text])[0] for name, text in files.items()]
    return [text for column in columns for text in column]
