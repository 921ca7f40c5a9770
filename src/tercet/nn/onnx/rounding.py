"""How 8-bit export rounds the inputs of linear layers: with steps that it chooses once.

Steps that depend on a batch would make the vector of a text depend on the texts beside it. One step
for all inputs of a layer is too coarse where some are dozens of times as large as the rest, and the
same ones in all sentences:

- After a norm, each input is divided by a factor of its own, by which its weights are multiplied
  (SmoothQuant, Xiao et al., 2023).
- Feed-forward neurons cannot be divided for free; the few largest stay in fp32.

Both are measured on the project's own sentences: plain ones, code, many scripts, symbols.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
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

Floats = NDArray[np.float32]

# One feed-forward neuron in this many stays in fp32.
SHARE = 192
# How much of an input's size its divisor takes on; the rest stays for the steps of the input.
STRENGTH = 0.7
# An input that is quiet in the measured sentences may be louder in others: it is taken to be at
# least this share of the median input.
QUIETEST = 0.25
SENTENCES = 128
TOKENS = 128
# The linear layers of each layer, and whether their inputs come from a norm.
LINEARS = {
    "attention.qkv": True,
    "attention.output": False,
    "feed_forward.expand": True,
    "feed_forward.contract": False,
}


@dataclass(frozen=True, slots=True)
class Rounding:
    """How the inputs of a linear layer become 8-bit steps.

    divisors: of each input; 1 where inputs are not divided, float32 [inputs]
    apart: the inputs that stay in fp32, int64 [apart]
    step: the size of one of the 256 steps to which the others, divided, are rounded
    zero: the step that represents 0
    """

    divisors: Floats
    apart: NDArray[np.int64]
    step: float
    zero: int


@dataclass(slots=True)
class Range:
    """The least and greatest value of each input of a linear layer so far, [inputs]."""

    low: Tensor
    high: Tensor


def find_roundings(encoder: Encoder, tokenizer: Tokenizer) -> dict[str, Rounding]:
    """The rounding of every linear layer of the encoder's layers, by the name of the linear."""
    texts = calibration_texts()
    tokens = tokenizer.encode(texts, max_tokens=min(TOKENS, encoder.config.max_tokens))
    with torch.inference_mode(), _measured(encoder) as ranges:
        encoder(DeviceTokens.from_host(tokens, encoder.device))
    return {
        name: _rounding(name, found, encoder.get_submodule(name)) for name, found in ranges.items()
    }


def calibration_texts() -> list[str]:
    """The sentences on which inputs are measured."""
    odd = (resources.files("tercet.nn.onnx") / "calibration.txt").read_text("utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        write_sample(Path(folder), rows=SENTENCES)
        files = {"ids-sst-train.csv": "sentence", "quora-train.csv": "sentence1"}
        columns = [read_texts(Path(folder) / name, [text])[0] for name, text in files.items()]
    return ["", *(text for column in (*columns, odd) for text in column)]


@contextmanager
def _measured(encoder: Encoder) -> Iterator[dict[str, Range]]:
    """The ranges of what linear layers read inside; the encoder calls them by `forward`."""
    ranges: dict[str, Range] = {}
    linears = {
        f"layers.{number}.{part}": layer.get_submodule(part)
        for number, layer in enumerate(encoder.layers)
        for part in LINEARS
    }

    def watch(name: str, linear: nn.Module) -> None:
        forward = linear.forward

        def measure(inputs: Tensor) -> Tensor:
            ranges[name] = Range(*inputs.float().aminmax(dim=0))
            outputs: Tensor = forward(inputs)
            return outputs

        linear.forward = measure

    for name, linear in linears.items():
        watch(name, linear)
    try:
        yield ranges
    finally:
        for linear in linears.values():
            del linear.forward


def _rounding(name: str, found: Range, linear: nn.Module) -> Rounding:
    low, high = found.low.cpu().numpy(), found.high.cpu().numpy()
    sizes = np.maximum(high, -low)
    divisors, apart = np.ones_like(sizes), np.zeros(0, np.int64)
    part = name.split(".", 2)[2]
    if LINEARS[part]:
        weight = linear.get_parameter("weight").detach().float().cpu().numpy()
        divisors = _divisors(sizes, np.abs(weight).max(axis=0))
    elif part == "feed_forward.contract":
        order = np.argsort(sizes, kind="stable")
        apart = np.sort(order[len(order) - len(order) // SHARE :])
    usual = np.setdiff1d(np.arange(len(sizes)), apart)
    least = min(float((low / divisors)[usual].min()), 0.0)
    greatest = max(float((high / divisors)[usual].max()), 0.0)
    step = (greatest - least) / 255 or 1.0
    return Rounding(divisors, apart, step, round(-least / step))


def _divisors(sizes: Floats, weights: Floats) -> Floats:
    """The divisor of each input; sizes of inputs and of their largest weights, [inputs] each."""
    sizes, weights = (
        np.maximum(values, QUIETEST * np.median(values) or 1.0) for values in (sizes, weights)
    )
    divisors: Floats = (sizes**STRENGTH / weights ** (1 - STRENGTH)).astype(np.float32)
    return divisors
