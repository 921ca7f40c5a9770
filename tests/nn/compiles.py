"""Compiles the kernels of a small encoder ahead, and then those that a real step launches.

Run in a process of its own by test_compiling.py: Triton decides on import whether it interprets
kernels. Without a GPU it compiles for one of compute capability 9.0, and nothing is launched.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import torch
from test_fused import DEVICE, LENGTHS, clear, make_encoder, make_tokens
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from tercet.nn import fused
from tercet.nn.compiling import _outline, compile_ahead, compile_kernels
from tercet.nn.fused import FusedEncoder
from tercet.nn.launches import compiled_only

ON_GPU = DEVICE.type == "cuda"


class NoDriver:
    """Says for which GPU to compile, and has none."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


def entries() -> set[str]:
    """What Triton's cache holds."""
    return {path.name for path in Path(os.environ["TRITON_CACHE_DIR"]).iterdir()}


def main(architecture: str) -> None:
    if not ON_GPU:
        driver.set_active(NoDriver())
        # Only GPUs add a product in half precision to a matrix in float32.
        fused._accumulate = lambda *_: None
    encoder = make_encoder(architecture)
    if ON_GPU:
        compile_ahead(encoder, max_tokens=64, device=torch.device("cuda", 0)).result()
    else:
        with ThreadPoolExecutor(2) as pool:
            compile_kernels(_outline(encoder), max_tokens=64, pool=pool)
    ahead = entries()
    clear(encoder)
    layers = FusedEncoder(encoder)
    with nullcontext() if ON_GPU else compiled_only():
        states = layers(make_tokens(LENGTHS), [encoder.config.layers])
        assert states is not None
        torch.autograd.backward(states[0].float().sum())
    print(json.dumps({"ahead": len(ahead), "later": len(entries() - ahead)}))


if __name__ == "__main__":
    main(sys.argv[1])
