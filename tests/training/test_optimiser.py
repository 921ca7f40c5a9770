from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tercet.network.network import Network
from tercet.specs import OptimiserSpec
from tercet.training.parts import adamw, build_optimiser, set_rate

TASKS = {
    "sentiment": {
        "data": {"layout": "cs224n-sst"},
        "labels": ["bad", "good"],
        "single": {
            "head": {"kind": "mlp", "hidden": [8]},
            "objective": {"kind": "cross-entropy"},
        },
    },
}


@pytest.fixture
def network(make_network: Callable[..., Network]) -> Network:
    return make_network(TASKS)


def settings_of(network: Network, optimiser: torch.optim.Optimizer) -> dict[str, tuple]:
    """Learning rate and weight decay of each parameter by its name."""
    names = {parameter: name for name, parameter in network.named_parameters()}
    return {
        names[parameter]: (group["lr"], group["weight_decay"])
        for group in optimiser.param_groups
        for parameter in group["params"]
    }


def test_it_matches_the_public_reference(real_data: Path) -> None:
    """1,000 steps of a linear layer, as the course that the file comes from takes them."""
    reference = np.load(real_data / "cs224n" / "optimizer_test.npy")
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    model = nn.Linear(3, 2, bias=False)
    optimiser = adamw(model.named_parameters(), OptimiserSpec(lr=1e-3, weight_decay=1e-4))
    for _ in range(1000):
        optimiser.zero_grad()
        x = torch.FloatTensor(rng.uniform(size=[3]))
        y = torch.Tensor([x[0] + x[1], -x[2]])
        torch.autograd.backward(((y - model(x)) ** 2).sum())
        optimiser.step()
    weights = model.weight.detach().numpy()
    np.testing.assert_allclose(weights, reference, rtol=1e-4, atol=1e-6)


def test_steps_are_those_of_the_algorithm_with_decoupled_decay() -> None:
    spec = OptimiserSpec(lr=0.1, weight_decay=0.5, betas=(0.8, 0.9), eps=1e-4)
    weight = nn.Parameter(torch.tensor([[1.0, -2.0]]))
    optimiser = adamw([("weight", weight)], spec)
    expected = weight.detach().clone().double()
    first = second = torch.zeros(1, 2, dtype=torch.float64)
    for step in range(1, 6):
        gradient = torch.tensor([[0.3 * step, -1.0]], dtype=torch.float64)
        weight.grad = gradient.float()
        optimiser.step()
        first = 0.8 * first + 0.2 * gradient
        second = 0.9 * second + 0.1 * gradient**2
        expected *= 1 - 0.1 * 0.5
        moved = (first / (1 - 0.8**step)) / ((second / (1 - 0.9**step)).sqrt() + 1e-4)
        expected -= 0.1 * moved
        torch.testing.assert_close(weight.detach().double(), expected, rtol=1e-5, atol=1e-6)


def test_biases_and_norms_do_not_decay(network: Network) -> None:
    optimiser = build_optimiser(network, OptimiserSpec(lr=1e-3, weight_decay=0.1))
    found = settings_of(network, optimiser)
    assert set(found) == {name for name, _ in network.named_parameters()}
    for name, (_, decay) in found.items():
        plain = name.endswith(".bias") or "norm" in name
        assert decay == (0.0 if plain else 0.1), name


def test_they_stay_where_the_gradient_is_zero(network: Network) -> None:
    before = {name: value.clone() for name, value in network.state_dict().items()}
    optimiser = build_optimiser(network, OptimiserSpec(lr=0.1, weight_decay=0.1))
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    moved = {name for name, value in network.state_dict().items() if not value.equal(before[name])}
    still = {name for name in before if name.endswith(".bias") or "norm" in name}
    assert moved == set(before) - still


def test_heads_may_have_their_own_rate(network: Network) -> None:
    optimiser = build_optimiser(network, OptimiserSpec(lr=1e-5, head_lr=1e-3))
    for name, (lr, _) in settings_of(network, optimiser).items():
        assert lr == (1e-3 if name.startswith("heads.") else 1e-5), name
    same = build_optimiser(network, OptimiserSpec(lr=1e-5))
    assert {lr for lr, _ in settings_of(network, same).values()} == {1e-5}


def test_a_factor_scales_every_peak_and_never_adds_up(network: Network) -> None:
    optimiser = build_optimiser(network, OptimiserSpec(lr=1e-5, head_lr=1e-3))
    for factor in (0.5, 0.25, 1.0):
        set_rate(optimiser, factor)
        for name, (lr, _) in settings_of(network, optimiser).items():
            peak = 1e-3 if name.startswith("heads.") else 1e-5
            assert lr == pytest.approx(peak * factor)


def test_what_does_not_train_is_left_out(network: Network) -> None:
    network.encoder.requires_grad_(False)
    optimiser = build_optimiser(network, OptimiserSpec())
    assert set(settings_of(network, optimiser)) == {
        name for name, _ in network.named_parameters() if name.startswith("heads.")
    }


def test_it_is_torchs_fused_one(network: Network) -> None:
    optimiser = build_optimiser(network, OptimiserSpec())
    assert type(optimiser) is torch.optim.AdamW
    assert all(group["fused"] for group in optimiser.param_groups)
