"""Packed linear layers: the same products, and never those of weights that have changed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn

from tercet.nn import packed
from tercet.nn.packed import PackedLinear, pack

pytestmark = pytest.mark.skipif(
    not packed._has_operators(), reason="this torch has no packed products"
)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 32, bias=False)).eval()
    pack(made)
    return made


def product(layer: nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
    return nn.functional.linear(inputs, layer.weight, layer.bias)


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_products_are_those_of_a_plain_layer(rows: int) -> None:
    inputs = torch.randn(rows, 48)
    layer = network()[0]
    assert isinstance(layer, PackedLinear)
    with torch.inference_mode():
        torch.testing.assert_close(layer(inputs), product(layer, inputs))


def test_packed_weights_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = network()[0]
    inputs = torch.randn(5, 48)
    with torch.inference_mode():
        expected = product(layer, inputs)
        layer.weight.data.zero_()  # behind its back: only the packed copy still has the values
        torch.testing.assert_close(layer(inputs), expected)


def test_names_and_values_stay() -> None:
    plain = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    parameters = list(plain.parameters())
    pack(plain)
    assert plain.state_dict().keys() == before.keys()
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(new is old for new, old in zip(plain.parameters(), parameters, strict=True))


def double(layer: nn.Linear) -> None:
    with torch.no_grad():
        layer.weight.mul_(2.0)


def replace(layer: nn.Linear) -> None:
    layer.weight.data = layer.weight.data * 2.0


def train_behind_its_back(layer: nn.Linear) -> None:
    layer.train()
    layer.weight.data.mul_(2.0)
    layer.eval()


@pytest.mark.parametrize("change", [double, replace, train_behind_its_back])
def test_weights_that_changed_are_not_read_from_the_packed_copy(
    change: Callable[[nn.Linear], None],
) -> None:
    layer, inputs = network()[0], torch.randn(5, 48)
    change(layer)
    with torch.inference_mode():
        torch.testing.assert_close(layer(inputs), product(layer, inputs))


def test_packing_again_reads_the_new_weights() -> None:
    made, inputs = network(), torch.randn(5, 48)
    train_behind_its_back(made[0])
    pack(made)
    assert made[0]._packed is not None
    with torch.inference_mode():
        torch.testing.assert_close(made[0](inputs), product(made[0], inputs))


def test_gradients_and_bf16_are_as_in_a_plain_layer() -> None:
    made, inputs = network(), torch.randn(5, 48)
    made(inputs).sum().backward()
    assert made[0].weight.grad is not None
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert made[0](inputs).dtype == torch.bfloat16


def test_a_copy_is_plain_and_independent() -> None:
    made = network()
    copied = deepcopy(made)
    assert type(copied[0]) is nn.Linear
    assert torch.equal(copied[0].weight, made[0].weight)
    double(copied[0])
    assert not torch.equal(copied[0].weight, made[0].weight)
    assert copied[2].bias is None
    assert not copied.training


def test_only_full_precision_is_packed() -> None:
    made = nn.Sequential(nn.Linear(8, 4, dtype=torch.bfloat16))
    pack(made)
    assert type(made[0]) is nn.Linear
