from __future__ import annotations

import pytest
import torch

from tercet.nn.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(1000, 401), (3,), (0, 4)])
def test_it_drops_at_its_rate_and_keeps_the_mean(rate, shape):
    torch.manual_seed(0)
    dropped = Dropout(rate)(torch.ones(shape))
    assert dropped.shape == shape
    values = dropped[dropped > 0]
    torch.testing.assert_close(values, torch.full_like(values, 1 / (1 - rate)), rtol=1e-3, atol=0)
    if dropped.numel() > 1000:
        assert abs((dropped == 0).float().mean().item() - rate) < 0.003
        assert abs(dropped.mean().item() - 1) < 0.01
        neighbours = (dropped[:, 1:] == 0) & (dropped[:, :-1] == 0)
        assert abs(neighbours.float().mean().item() - rate**2) < 0.005


def test_the_gradient_passes_where_the_value_did():
    torch.manual_seed(0)
    values = torch.randn(50, 30, requires_grad=True)
    dropped = Dropout(0.4)(values)
    dropped.sum().backward()
    torch.testing.assert_close(values.grad * values.detach(), dropped.detach())


def test_it_follows_the_seed_and_rests_in_evaluation():
    values = torch.randn(20, 20)
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(Dropout(0.5)(values))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert Dropout(0.5).eval()(values) is values
    assert torch.equal(Dropout(0.0)(values), values)
