from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import tercet
from tercet.model import Model
from tercet.network.network import Network
from tercet.nn import layout
from tercet.nn.folder import load_encoder
from tercet.nn.layout import store_by_columns
from tercet.nn.onednn import PackedLinear


@pytest.fixture(params=[False, True], ids=["columns", "packed"])
def packed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both layouts, whatever this machine prefers."""
    monkeypatch.setattr(layout, "is_worth_packing", lambda: request.param)
    return bool(request.param)


def test_values_and_shapes_stay() -> None:
    network = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    inputs = torch.randn(4, 3)
    expected = network(inputs)
    store_by_columns(network)
    torch.testing.assert_close(network(inputs), expected)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert network.get_parameter("0.weight").t().is_contiguous()


def test_a_new_model_has_the_memory_layout_of_a_loaded_one(
    tiny_encoder: Path, packed: bool
) -> None:
    loaded = tercet.load(tiny_encoder, device="cpu")
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks={})
    made = Model(network, loaded.tokenizer, loaded.info)
    assert strides(made) == strides(loaded)
    layers = [part for part in network.modules() if isinstance(part, nn.Linear)]
    assert layers
    for layer in layers:
        assert isinstance(layer, PackedLinear) is packed
        assert layer.weight.is_contiguous() is packed


def strides(model: Model) -> dict[str, tuple[int, ...]]:
    return {name: tensor.stride() for name, tensor in model.network.state_dict().items()}


def test_a_loaded_model_saves_what_it_was_loaded_from(
    tiny_encoder: Path, tmp_path: Path, packed: bool
) -> None:
    model = tercet.load(tiny_encoder, device="cpu")
    model.save(tmp_path / "saved")
    again = tercet.load(tmp_path / "saved", device="cpu")
    state = again.network.state_dict()
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(tensor, state[name])
    torch.testing.assert_close(again.embed(["a film"]), model.embed(["a film"]))
