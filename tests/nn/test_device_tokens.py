from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tercet.errors import TercetError
from tercet.nn import device_tokens
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.plan import exact_blocks, padded_blocks

CPU = torch.device("cpu")
LENGTHS = st.lists(st.integers(1, 70) | st.integers(300, 500), max_size=40)


def test_a_batch_keeps_its_tokens_and_gains_positions_and_rows(make_tokens):
    tokens = DeviceTokens.from_host(make_tokens([[5, 6, 7], [8], [9, 10]]), CPU)
    assert tokens.ids.tolist() == [5, 6, 7, 8, 9, 10]
    assert tokens.types.tolist() == [0] * 6
    assert tokens.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert tokens.rows.tolist() == [0, 0, 0, 1, 2, 2]
    assert tokens.offsets.tolist() == [0, 3, 4, 6]
    assert (tokens.longest, tokens.count) == (3, 3)
    assert (tokens.ids.dtype, tokens.offsets.dtype) == (torch.int64, torch.int32)


def test_an_empty_row_is_named(make_tokens):
    with pytest.raises(TercetError, match="row 1 "):
        DeviceTokens.from_host(make_tokens([[5], [], [6]]), CPU)


@given(lengths=LENGTHS)
def test_exact_blocks_hold_whole_rows_of_one_length(lengths):
    plan = exact_blocks(np.array(lengths, np.int64))
    rows = np.repeat(np.arange(len(lengths)), lengths)
    order = plan.arrays.get("order", np.arange(len(rows)))
    start = 0
    for count, length in plan.shapes:
        block = rows[order[start : start + count * length]].reshape(count, length)
        assert (block == block[:, :1]).all()
        assert all(lengths[row] == length for row in block[:, 0])
        start += count * length
    assert start == len(rows)
    assert len(plan.shapes) == len(set(lengths))
    if "order" in plan.arrays:
        assert (order[plan.arrays["places"]] == np.arange(len(rows))).all()
        assert (np.diff(order)[np.diff(rows[order]) == 0] == 1).all()


@pytest.mark.parametrize("lengths", [[3, 3, 5, 5, 9], [9, 5, 5, 2], [4, 4], [7]])
def test_batches_sorted_by_length_are_not_moved(lengths):
    assert not exact_blocks(np.array(lengths, np.int64)).arrays


@given(lengths=LENGTHS)
def test_padded_blocks_give_each_token_a_slot_and_mark_the_rest(lengths):
    plan = padded_blocks(np.array(lengths, np.int64))
    real = np.concatenate(
        [np.zeros(0, bool)]
        + [
            plan.arrays.get(f"real{index}", np.ones(shape, bool)).reshape(-1)
            for index, shape in enumerate(plan.shapes)
        ]
    )
    assert sorted(plan.arrays["slots"]) == list(np.flatnonzero(real))
    assert len(plan.shapes) <= 5
    assert all(length % 8 == 0 for _, length in plan.shapes)


def test_padded_blocks_split_where_padding_would_cost_much():
    typical = padded_blocks(np.arange(5, 40, dtype=np.int64))
    assert typical.shapes == [(35, 40)]
    outlier = padded_blocks(np.array([20] * 100 + [500], np.int64))
    assert outlier.shapes == [(1, 504), (100, 24)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_one_transfer_brings_the_same_values_to_cuda(make_tokens, monkeypatch):
    rows = [list(range(1, 2 + 7 * i % 30)) for i in range(20)]
    there = DeviceTokens.from_host(make_tokens(rows), torch.device("cuda"))
    monkeypatch.setattr(device_tokens, "exact_blocks", padded_blocks)
    here = DeviceTokens.from_host(make_tokens(rows), CPU)
    for name in ("ids", "types", "positions", "rows", "offsets"):
        assert torch.equal(getattr(there, name).cpu(), getattr(here, name))
    assert torch.equal(there.plan.slots.cpu(), here.plan.slots)
    for far, near in zip(there.plan.blocks, here.plan.blocks, strict=True):
        assert (far.rows, far.length) == (near.rows, near.length)
        assert (far.real is None) == (near.real is None)
        assert far.real is None or torch.equal(far.real.cpu(), near.real)
