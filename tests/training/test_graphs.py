"""Fixed shapes for captured graphs, and replay against plain running where there is a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tercet.nn.device_tokens import DeviceTokens, PackedTokens
from tercet.nn.folder import load_encoder
from tercet.nn.plan import one_block
from tercet.nn.pooling import pool
from tercet.text.tokens import Tokens
from tercet.training.graphs import to_fixed_shape


def make_tokens(lengths: list[int], *, vocabulary: int = 100, seed: int = 0) -> Tokens:
    generator = np.random.default_rng(seed)
    total = sum(lengths)
    return Tokens(
        ids=generator.integers(5, vocabulary, total, dtype=np.int32),
        types=np.zeros(total, np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        longest=max(lengths),
        truncated=0,
    )


@given(st.lists(st.integers(2, 64), min_size=1, max_size=200))
def test_a_fixed_shape_keeps_the_rows_and_adds_few_tokens(lengths: list[int]) -> None:
    tokens = make_tokens(lengths)
    fixed = to_fixed_shape(tokens, max_tokens=64)
    total = len(tokens.ids)
    assert np.array_equal(fixed.ids[:total], tokens.ids)
    assert np.array_equal(fixed.offsets[: len(lengths) + 1], tokens.offsets)
    assert fixed.offsets[-1] == len(fixed.ids)
    assert fixed.lengths.min() >= 1
    assert fixed.lengths.max() <= fixed.longest <= 64
    assert len(fixed.ids) - total <= max(160, total // 4)


def test_batches_of_like_size_share_few_shapes() -> None:
    generator = np.random.default_rng(0)
    batches = [make_tokens(generator.integers(5, 30, 64).tolist()) for _ in range(200)]
    shapes = {
        (len(fixed.ids), len(fixed), fixed.longest)
        for fixed in (to_fixed_shape(tokens, max_tokens=128) for tokens in batches)
    }
    assert len(shapes) <= 4


@pytest.mark.parametrize("architecture", ["tiny_encoder", "tiny_mpnet"])
@pytest.mark.parametrize("how", ["mean", "cls", "max"])
def test_rows_that_only_fill_a_shape_change_nothing(
    architecture: str, how: Any, request: pytest.FixtureRequest
) -> None:
    encoder = load_encoder(request.getfixturevalue(architecture)).eval()
    tokens = make_tokens([3, 17, 9, 30, 4, 12])
    cpu = torch.device("cpu")
    plain = DeviceTokens.from_host(tokens, cpu)
    fixed = to_fixed_shape(tokens, max_tokens=64)
    packed = PackedTokens.pack(
        fixed, one_block(fixed.lengths, length=fixed.longest), used=len(tokens), pinned=False
    )
    filled = packed.unpack(packed.buffer)
    with torch.inference_mode():
        expected = pool(encoder(plain), plain, how=how)
        found = pool(encoder(filled), filled, how=how)[: filled.used]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
