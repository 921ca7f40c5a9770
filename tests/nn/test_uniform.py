"""The numbers that decide what the fused layers drop."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton")
import triton
import triton.language as tl

from tercet.nn.kernels import uniform

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
COUNT, BLOCK = 1 << 18, 1 << 14


@triton.jit
def _draw(seeds, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, uniform(tl.load(seeds), at))


def draw(seed: int) -> Tensor:
    """The numbers of the first places, float64 [COUNT]."""
    out = torch.empty(COUNT, device=DEVICE)
    _draw[(COUNT // BLOCK,)](torch.tensor([seed], device=DEVICE), out, BLOCK=BLOCK)
    return out.double()


def correlation(a: Tensor, b: Tensor) -> float:
    return torch.corrcoef(torch.stack([a, b]))[0, 1].item()


@pytest.mark.parametrize("seed", [0, 1, (1 << 31) - 1])
def test_they_are_uniform(seed: int) -> None:
    drawn = draw(seed)
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    # Chi-squared with 255 degrees of freedom: 99.99 % are below 347.
    counts = torch.histc(drawn.cpu(), bins=256, min=0.0, max=1.0)
    expected = COUNT / 256
    assert ((counts - expected) ** 2 / expected).sum() < 347
    for p in (0.1, 0.5):
        assert abs((drawn < p).double().mean().item() - p) < 4 * (p * (1 - p) / COUNT) ** 0.5


def test_neighbours_and_neighbouring_seeds_are_independent() -> None:
    drawn, limit = draw(7), 4 / COUNT**0.5
    for distance in (1, 2, 3, 4, 16, 128, 384, 768, 1 << 14):
        assert abs(correlation(drawn[:-distance], drawn[distance:])) < limit, distance
        both = (drawn[:-distance] < 0.1) & (drawn[distance:] < 0.1)
        assert abs(both.double().mean().item() - 0.01) < 4 * (0.01 / COUNT) ** 0.5, distance
    for seed in (6, 8, 7 + (1 << 16), 7 ^ (1 << 30)):
        assert abs(correlation(drawn, draw(seed))) < limit, seed
