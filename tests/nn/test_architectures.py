from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tercet.errors import TercetError
from tercet.nn.architectures.bert import BERT, BertConfig
from tercet.nn.architectures.record import ARCHITECTURES
from tercet.nn.config import read_config
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.folder import load_encoder, save_encoder

SHAPE = {"vocabulary": 11, "width": 16, "layers": 1, "heads": 1, "feed_forward": 16}


class OtherConfig(BertConfig):
    model_type = "other"


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    """An architecture that a user of the registry would add: BERT's layers, no fast path."""
    plain = {"fused": False, "cuda_graphs": False, "varlen": False, "onnx": ""}
    record = replace(BERT, model_type="other", config=OtherConfig, prefix="other.", **plain)
    parts = {kind: ARCHITECTURES[kind] for kind in ARCHITECTURES}
    monkeypatch.setattr(ARCHITECTURES, "_parts", {**parts, "other": record})


@pytest.fixture
def folder(other: None, tmp_path: Path) -> Path:
    save_encoder(Encoder(OtherConfig(**SHAPE)), tmp_path / "other")
    return tmp_path / "other"


# Every part that an architecture may have.
WHOLE: dict[str, dict[str, object]] = {
    "electra": {"embedding_width": 8},
    # Its first layer has one norm less.
    "modernbert": {"layers": 2},
    "deberta-v2": {
        "embedding_width": 8,
        "token_types": 2,
        "comparisons": ["c2p", "p2c"],
        "table_norm": "layer_norm",
    },
}


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_the_record_decides_every_tensor_name_key_and_default(name: str) -> None:
    record = ARCHITECTURES[name]
    encoder = Encoder(record.config(**SHAPE | WHOLE.get(name, {})))
    names = (key.rsplit(".", 1)[0] for key in encoder.state_dict())
    stems = {re.sub(r"layers\.\d+\.", "layers.{}.", stem) for stem in names}
    assert stems == record.tensors.keys()
    assert encoder.config.architecture is record
    assert set(record.config.config_keys().values()) < encoder.config.to_json().keys()


def test_a_registered_architecture_is_saved_and_loaded(folder: Path, make_tokens) -> None:
    assert json.loads((folder / "config.json").read_text())["model_type"] == "other"
    encoder = load_encoder(folder).eval()
    assert isinstance(encoder.config, OtherConfig)
    tokens = DeviceTokens.from_host(make_tokens([[1, 2, 3], [4]]), torch.device("cpu"))
    assert encoder(tokens).shape == (4, 16)


def test_an_architecture_enters_no_fast_path_by_accident(folder: Path) -> None:
    encoder = load_encoder(folder)
    pytest.importorskip("triton")
    from tercet.nn.fused import is_fused

    assert not is_fused(encoder)
    assert is_fused(Encoder(BertConfig(**SHAPE)))


def test_an_architecture_that_cannot_be_exported_says_so(folder: Path) -> None:
    pytest.importorskip("onnx")
    from tercet.nn.onnx.encoder import encoder_graph

    with pytest.raises(TercetError, match="`other` cannot be exported to ONNX"):
        encoder_graph(load_encoder(folder), pooling="mean", roundings=None)


@pytest.mark.parametrize("model_type", ["gpt2", None, 3, ["bert"]])
def test_an_unknown_model_type_is_refused_with_the_known_ones(
    tmp_path: Path, model_type: object
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    with pytest.raises(TercetError, match=r"config\.json: model_type is .* bert, mpnet"):
        read_config(tmp_path)
    with pytest.raises(TercetError, match="bert, mpnet"):
        ARCHITECTURES["gpt2"]


@pytest.mark.parametrize(
    ("key", "value", "right"),
    [
        ("relative_attention_num_buckets", 3, "a whole number from 4"),
        ("max_position_embeddings", 2, "above 2"),
        ("vocab_size", True, "a whole number above 0"),
        ("layer_norm_eps", float("nan"), "a number from 0"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(
    tiny_mpnet: Path, tmp_path: Path, key: str, value: object, right: str
) -> None:
    config = json.loads((tiny_mpnet / "config.json").read_text()) | {key: value}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(TercetError, match=rf"config\.json: {key} is .*; it should be {right}"):
        read_config(tmp_path)


def test_a_pad_id_of_null_is_the_default(tiny_mpnet: Path, tmp_path: Path) -> None:
    config = json.loads((tiny_mpnet / "config.json").read_text()) | {"pad_token_id": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_config(tmp_path).pad_id == 1


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_the_first_layers_of_every_architecture_can_be_kept(name: str) -> None:
    encoder = Encoder(ARCHITECTURES[name].config(**SHAPE | WHOLE.get(name, {}) | {"layers": 2}))
    shallow = encoder.first(1)
    assert shallow.config.layers == len(shallow.layers) == 1
    assert (encoder.config.layers, len(encoder.layers)) == (2, 2)
    assert Encoder(shallow.config).state_dict().keys() == shallow.state_dict().keys()
