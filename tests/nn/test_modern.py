"""ModernBERT's rotary positions: the same with gradients and, in place, without."""

from __future__ import annotations

import pytest
import torch

from tercet.nn.modern import turn


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_turning_in_place_equals_turning_with_gradients(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    qkv = torch.randn(7, 3, 2, 8).to(dtype)
    angles = torch.randn(7, 4)[:, None, None]
    expected = turn(qkv, angles.cos(), angles.sin())
    assert not torch.equal(expected[:, :2], qkv[:, :2])
    assert torch.equal(expected[:, 2], qkv[:, 2])
    with torch.inference_mode():
        given = qkv.clone()
        found = turn(given, angles.cos(), angles.sin())
    assert found.data_ptr() == given.data_ptr()
    torch.testing.assert_close(found, expected)


def test_turning_keeps_lengths_and_what_two_tokens_have_in_common() -> None:
    torch.manual_seed(0)
    qkv, rates = torch.randn(1, 3, 1, 8).expand(6, 3, 1, 8).clone(), torch.rand(4)
    angles = (torch.arange(6.0)[:, None] * rates)[:, None, None]
    query, key = turn(qkv, angles.cos(), angles.sin())[:, :2, 0].unbind(1)
    torch.testing.assert_close(query.norm(dim=-1), qkv[:, 0, 0].norm(dim=-1))
    scores = query @ key.T
    # A product depends on the distance of two tokens alone.
    for distance in range(-5, 6):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
