"""How loudly the neurons of an encoder answer, which 8 bits need to know.

A few neurons of each feed-forward part answer dozens of times as loudly as the rest, whatever the
sentence. One step of 8 bits would have to be that much larger for all; apart, they cost little.
What the rest answer has the same extremes in all sentences, so its step is chosen beforehand.
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

# One neuron of so many is kept apart.
SHARE = 192
SENTENCES = 128
TOKENS = 64


@dataclass(frozen=True, slots=True)
class Loudness:
    """Of the feed-forward neurons of a layer.

    loud: those that stay in fp32, int64 [neurons]
    step: the size of one of 256 steps that what the others answer is rounded to
    zero: the step that stands for 0
    """

    loud: NDArray[np.int64]
    step: float
    zero: int


def loudness(encoder: Encoder, tokenizer: Tokenizer) -> list[Loudness]:
    """Of each layer, as heard on the project's own sentences."""
    texts = _sentences()
    tokens = tokenizer.encode(texts, max_tokens=min(TOKENS, encoder.config.max_tokens))
    heard: list[tuple[Tensor, Tensor]] = []
    hooks = [
        layer.get_submodule("feed_forward").register_forward_pre_hook(partial(_listen, heard))
        for layer in encoder.layers
    ]
    try:
        with torch.inference_mode():
            encoder(DeviceTokens.from_host(tokens, encoder.device))
    finally:
        for hook in hooks:
            hook.remove()
    return [_judge(low.cpu().numpy(), high.cpu().numpy()) for low, high in heard]


def _listen(
    heard: list[tuple[Tensor, Tensor]], part: FeedForward, given: tuple[Tensor, ...]
) -> None:
    low, high = part.neurons(given[0]).float().aminmax(dim=0)
    heard.append((low, high))


def _judge(low: NDArray[np.float32], high: NDArray[np.float32]) -> Loudness:
    """low, high: the least and the greatest that each neuron answered, [neurons]."""
    order = np.argsort(np.maximum(high, -low), kind="stable")
    rest, loud = np.split(order, [len(order) - len(order) // SHARE])
    least, greatest = min(float(low[rest].min()), 0.0), max(float(high[rest].max()), 0.0)
    step = (greatest - least) / 255 or 1.0
    return Loudness(np.sort(loud), step, round(-least / step))


def _sentences() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=SENTENCES)
        files = {"ids-sst-train.csv": "sentence", "quora-train.csv": "sentence1"}
        columns = [read_texts(Path(folder) / name, [text])[0] for name, text in files.items()]
    return [text for column in columns for text in column]
