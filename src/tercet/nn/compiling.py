"""Compiling the kernels of the fused layers side by side, before the first step launches them.

Triton compiles a kernel when it is first launched, one after the other, which is most of a new
machine's first minute. Most of a compilation needs neither Python's lock nor the GPU, so threads
share the work while the process prepares its first step. Triton keeps the results on disk: later
runs, resumed ones among them, only load them.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import torch
from triton import AsyncCompileMode
from triton.runtime import driver

from tercet.cores import threads
from tercet.nn.device_tokens import AttentionPlan, DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.fused import FusedEncoder
from tercet.nn.launches import LONGEST, compiled_only

_TOKENS = 64
# One thread, which divides the work among others: requests wait for each other.
_background = ThreadPoolExecutor(1, thread_name_prefix="compile")


def compile_ahead(encoder: Encoder, *, max_tokens: int, device: torch.device) -> Future[None]:
    """Compile in the background what training an encoder launches for rows of up to `max_tokens`.

    What an earlier call compiles is awaited, not compiled twice.
    """
    return _background.submit(_compile, _outline(encoder), max_tokens=max_tokens, device=device)


def compile_kernels(outline: Encoder, *, max_tokens: int, pool: Executor) -> list[Any]:
    """Compile the kernels of one forward and backward; what Triton returns for each launch.

    outline: an encoder without memory, which is not computed
    """
    layers = FusedEncoder(outline)
    tokens = _tokens(longest=max(32, min(max_tokens, LONGEST)))
    with AsyncCompileMode(pool), compiled_only() as kernels:
        states = layers(tokens, [outline.config.layers])
        assert states is not None
        torch.autograd.backward(states[0].sum())
    return kernels


def _outline(encoder: Encoder) -> Encoder:
    """The encoder on the device `meta`: shapes, types and what trains, but no numbers."""
    with torch.device("meta"):
        outline = Encoder(encoder.config).train(encoder.training)
    for own, parameter in zip(outline.parameters(), encoder.parameters(), strict=True):
        own.requires_grad = parameter.requires_grad
        own.grad = torch.empty_like(own) if own.requires_grad else None
    return outline


def _tokens(*, longest: int) -> DeviceTokens:
    numbers = torch.empty(_TOKENS, dtype=torch.int64, device="meta")
    return DeviceTokens(
        ids=numbers,
        types=numbers,
        positions=numbers,
        rows=numbers,
        offsets=torch.empty(2, dtype=torch.int32, device="meta"),
        longest=longest,
        count=1,
        used=1,
        plan=AttentionPlan(order=None, places=None, slots=None, blocks=()),
    )


def _compile(outline: Encoder, *, max_tokens: int, device: torch.device) -> None:
    # A thread starts on the first GPU, whichever its process uses.
    torch.cuda.set_device(device)
    with ThreadPoolExecutor(threads()) as pool:
        kernels = compile_kernels(outline, max_tokens=max_tokens, pool=pool)
        compiled = {id(kernel): kernel.result() for kernel in kernels if hasattr(kernel, "result")}
        # Some versions of Triton compile a launcher in C for each signature.
        list(pool.map(_build_launcher, compiled.values()))


def _build_launcher(kernel: Any) -> None:
    driver.active.launcher_cls(kernel.src, kernel.metadata)
