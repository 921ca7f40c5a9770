from __future__ import annotations

import pytest
import torch

from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Pooler
from tercet.nn.pooling import pool

LENGTHS = [4, 1, 9, 2, 4]


@pytest.fixture
def tokens(make_tokens) -> DeviceTokens:
    return DeviceTokens.from_host(
        make_tokens([[1] * length for length in LENGTHS]), torch.device("cpu")
    )


@pytest.fixture
def hidden() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(sum(LENGTHS), 6, requires_grad=True)


ROW_BY_ROW = {
    "cls": lambda row: row[0],
    "mean": lambda row: row.mean(0),
    "max": lambda row: row.max(0).values,
}


@pytest.mark.parametrize("how", list(ROW_BY_ROW))
def test_pooling_equals_its_definition_and_so_do_gradients(how, hidden, tokens):
    result = pool(hidden, tokens, how=how)
    expected = torch.stack([ROW_BY_ROW[how](row) for row in hidden.split(LENGTHS)])
    torch.testing.assert_close(result, expected)
    weights = torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad((result * weights).sum(), hidden),
        torch.autograd.grad((expected * weights).sum(), hidden),
    )


@pytest.mark.parametrize("how", list(ROW_BY_ROW))
def test_a_row_alone_is_pooled_as_among_others(how, hidden, tokens, make_tokens):
    alone = DeviceTokens.from_host(make_tokens([[1] * LENGTHS[0]]), torch.device("cpu"))
    result = pool(hidden[: LENGTHS[0]], alone, how=how)
    torch.testing.assert_close(result, pool(hidden, tokens, how=how)[:1])


def test_the_pooler_reads_the_first_token(hidden, tokens):
    pooler = Pooler(6)
    result = pool(hidden, tokens, how="pooler", pooler=pooler)
    torch.testing.assert_close(result, pooler(pool(hidden, tokens, how="cls")))


def test_a_missing_pooler_is_a_clear_mistake(hidden, tokens):
    with pytest.raises(TercetError, match="has none"):
        pool(hidden, tokens, how="pooler", pooler=None)


@pytest.mark.parametrize("how", list(ROW_BY_ROW))
def test_pooling_keeps_the_type_and_repeats_itself(how, hidden, tokens):
    half = hidden.detach().bfloat16()
    vectors = pool(half, tokens, how=how)
    assert vectors.dtype == torch.bfloat16
    assert torch.equal(vectors, pool(half, tokens, how=how))
    torch.testing.assert_close(
        vectors.float(), pool(half.float(), tokens, how=how), atol=1e-2, rtol=1e-2
    )


def test_max_shares_the_gradient_of_a_tie(make_tokens):
    tokens = DeviceTokens.from_host(make_tokens([[1, 1]]), torch.device("cpu"))
    hidden = torch.ones(2, 1, requires_grad=True)
    pool(hidden, tokens, how="max").sum().backward()
    assert hidden.grad.sum() == 1
