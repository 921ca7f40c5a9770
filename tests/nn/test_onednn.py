"""Linear layers through oneDNN: the same products and gradients, and never those of weights that
have changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tercet
from tercet import cores
from tercet.nn import layout, onednn
from tercet.nn.layout import arrange_for_training
from tercet.nn.onednn import OneDnnLinear, PackedLinear, replace_linear
from tercet.recipe import Recipe
from tercet.training.listener import Silent
from tercet.training.run import train_recipe

pytestmark = pytest.mark.skipif(
    not onednn._has_operators(), reason="this torch has no packed products"
)

TASK: Any = {
    "data": {"layout": "cs224n-sst"},
    "labels": ["0", "1", "2", "3", "4"],
    "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
}


def network() -> nn.Sequential:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 32, bias=False)).eval()
    replace_linear(made, PackedLinear.of)
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


@pytest.mark.parametrize("kind", [OneDnnLinear, PackedLinear])
def test_on_another_device_it_is_a_plain_layer(
    kind: type[OneDnnLinear], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users move networks to their GPU."""

    def refuse(*_: object) -> None:
        raise AssertionError("oneDNN multiplies on the CPU only")

    layer = kind.of(nn.Linear(48, 96))
    layer.to("meta")
    monkeypatch.setattr(onednn, "_multiply", refuse)
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            assert layer(torch.empty(5, 48, device="meta")).shape == (5, 96)


def test_names_and_values_stay() -> None:
    plain = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    parameters = list(plain.parameters())
    replace_linear(plain, PackedLinear.of)
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
    replace_linear(made, PackedLinear.of)
    assert made[0]._packed is not None
    with torch.inference_mode():
        torch.testing.assert_close(made[0](inputs), product(made[0], inputs))


@pytest.mark.parametrize("kind", [OneDnnLinear, PackedLinear])
@pytest.mark.parametrize("shape", [(7, 48), (3, 5, 48), (1, 48), (48,)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("is_frozen", [True, False])
def test_gradients_are_those_of_a_plain_layer(
    kind: type[OneDnnLinear], shape: tuple[int, ...], has_bias: bool, is_frozen: bool
) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(48, 32, bias=has_bias)
    plain.weight.requires_grad = not is_frozen
    layer = kind.of(deepcopy(plain))
    results = []
    for made in (plain, layer):
        inputs = torch.linspace(-1, 1, math.prod(shape)).view(shape)
        inputs.requires_grad = True
        outputs = made(inputs)
        # Not contiguous: the same number for all outputs, and transposed.
        (
            outputs.sum() + outputs.square().t().tanh().sum()
            if outputs.dim() == 2
            else outputs.sum()
        ).backward()
        gradients = [parameter.grad for parameter in made.parameters()]
        results.append([outputs, inputs.grad, *gradients])
    for expected, found in zip(*results, strict=True):
        if expected is None:
            assert found is None
        else:
            torch.testing.assert_close(found, expected)


def test_no_rows_have_no_products() -> None:
    layer = OneDnnLinear.of(nn.Linear(4, 2))
    outputs = layer(torch.zeros(0, 4))
    outputs.sum().backward()
    assert outputs.shape == (0, 2)
    assert not layer.weight.grad.any()


def test_bf16_is_as_in_a_plain_layer() -> None:
    for layer in (network()[0], OneDnnLinear.of(nn.Linear(48, 96))):
        inputs = torch.randn(5, 48)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = layer(inputs)
            torch.testing.assert_close(found, product(layer, inputs))
        assert found.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("info", "family"),
    [
        ("vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n", 26),
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n", None),
        ("CPU implementer\t: 0x41\n", None),
    ],
)
def test_the_family_of_the_cpu(
    info: str, family: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_: info)
    monkeypatch.setattr(Path, "exists", lambda _: True)
    assert cores.amd_family.__wrapped__() == family


@pytest.mark.parametrize(
    ("family", "packs", "trains"), [(None, False, False), (25, True, False), (26, True, True)]
)
def test_training_needs_wider_units_than_packing(
    family: int | None, packs: bool, trains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn, "amd_family", lambda: family)
    assert onednn.is_worth_packing() is packs
    assert onednn.is_worth_training() is trains
    made = nn.Sequential(nn.Linear(8, 4))
    arrange_for_training(made)
    assert isinstance(made[0], OneDnnLinear) is trains


def test_a_training_uses_them_and_learns_the_same(
    tiny_encoder: Path, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rounding of their own."""
    monkeypatch.setenv("TERCET_CACHE", str(tmp_path / "cache"))
    products: list[torch.Size] = []
    multiply = onednn._multiply

    def counted(inputs: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        products.append(inputs.shape)
        return multiply(inputs, *others)

    monkeypatch.setattr(onednn, "_multiply", counted)
    tree = {
        "name": "products",
        "summary": "A recipe of the tests",
        "encoder": {"name": str(tiny_encoder), "max_tokens": 24},
        "tasks": {"sentiment": TASK},
        "stages": [{"steps": 4, "batch": 8, "optimiser": {"lr": 1e-3}}],
    }
    recipe = Recipe.from_tree(tree, where="products")
    scores = []
    for is_used in (False, True):
        monkeypatch.setattr(layout, "is_worth_training", lambda is_used=is_used: is_used)
        monkeypatch.setattr(layout, "is_worth_packing", lambda: False)
        out = tmp_path / f"run-{is_used}"
        train_recipe(recipe, data=sample_data, out=out, device="cpu", listener=Silent())
        assert bool(products) is is_used
        model = tercet.load(out, device="cpu")
        scores.append(model.embed(["a film", "the plot is dull"]))
    start = tercet.load(tiny_encoder, device="cpu").embed(["a film", "the plot is dull"])
    torch.testing.assert_close(*map(torch.from_numpy, scores), atol=1e-4, rtol=1e-4)
    assert abs(scores[0] - start).max() > 1e-2


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
    replace_linear(made, PackedLinear.of)
    assert type(made[0]) is nn.Linear
