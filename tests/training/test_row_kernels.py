"""Kernels over gradient rows against torch: run by Triton's interpreter where there is no GPU."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")
from tercet.training.row_kernels import combine, gramian

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# One below, one between and one at a multiple of the blocks.
LENGTHS = [1024, 5 * 1024, 16 * 2048]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_inner_products_are_those_of_torch(count: int, length: int) -> None:
    rows = torch.randn(count, length, device=DEVICE)
    expected = (rows.double() @ rows.double().t()).float()
    torch.testing.assert_close(gramian(rows), expected, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_first_row_becomes_the_weighted_sum(count: int, length: int) -> None:
    rows = torch.randn(count + 1, length, device=DEVICE)
    before, weights = rows.clone(), torch.randn(count, device=DEVICE)
    combine(rows[:count], weights)
    expected = (weights[:, None] * before[:count]).sum(0)
    torch.testing.assert_close(rows[0], expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(rows[1:], before[1:])
