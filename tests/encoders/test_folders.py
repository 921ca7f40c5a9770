"""Folders that are not quite encoders: one sentence each, and no code is run."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import tercet
from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.folder import load_encoder, save_encoder
from tercet.text.tokenizer import Tokenizer


@pytest.fixture
def folder(make_family: Any, tmp_path: Path) -> Path:
    shutil.copytree(make_family("roberta"), tmp_path / "encoder")
    return tmp_path / "encoder"


def change(folder: Path, **keys: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def refused(folder: Path) -> str:
    """What loading the folder says, in one line."""
    with pytest.raises(TercetError) as caught:
        tercet.load(folder, device="cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_unknown_architecture_is_told_the_known_ones(folder: Path) -> None:
    change(folder, model_type="longformer")
    said = refused(folder)
    assert "model_type is 'longformer'" in said
    assert "roberta, xlm-roberta, camembert, distilbert, electra, modernbert, deberta-v2" in said


@pytest.mark.parametrize("model_type", ["new", "roberta"])
def test_code_of_a_folder_is_never_run(folder: Path, model_type: str) -> None:
    change(folder, model_type=model_type, auto_map={"AutoModel": "modeling.NewModel"})
    (folder / "modeling.py").write_text("raise SystemExit('run')")
    assert "auto_map names code" in refused(folder)


def test_a_known_encoder_may_name_code_of_heads(folder: Path) -> None:
    change(folder, auto_map={"AutoModelForTokenClassification": "modeling.Tagger"})
    load_encoder(folder)


@pytest.mark.parametrize("family", ["roberta", "distilbert", "modernbert"])
def test_an_absurd_number_of_layers_is_refused_before_anything_is_made(
    make_family: Any, tmp_path: Path, family: str
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(make_family(family), folder)
    key = "n_layers" if family == "distilbert" else "num_hidden_layers"
    # Without types of layers, those of ModernBERT are made from their number.
    change(folder, **{key: 20_000_000, "layer_types": None})
    tracemalloc.start()
    try:
        with pytest.raises(TercetError, match=rf"{key} is 20000000; .* from 1 to 1,000"):
            load_encoder(folder)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_more_layers_than_weights_are_refused_whatever_the_file_holds(folder: Path) -> None:
    """A file may hold many empty tensors, so that their number is not enough."""
    weights = load_file(folder / "model.safetensors")
    empty = {
        f"encoder.layer.{n}.attention.self.query.weight": torch.ones(0) for n in range(2, 3000)
    }
    save_file(weights | empty, folder / "model.safetensors")
    change(folder, num_hidden_layers=3000)
    assert "num_hidden_layers is 3000" in refused(folder)


@pytest.mark.parametrize("older", ["spm.model", "sentencepiece.bpe.model", "vocab.json"])
def test_a_tokenizer_in_an_older_form_is_named(folder: Path, older: str) -> None:
    (folder / "tokenizer.json").rename(folder / older)
    said = refused(folder)
    assert f"only as {older}" in said
    assert "AutoTokenizer" in said


def test_roberta_begins_with_a_space_if_its_settings_say_so(folder: Path) -> None:
    path, texts = folder / "tokenizer_config.json", ["film", " film", "the film"]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"add_prefix_space": True}))
    theirs = transformers.AutoTokenizer.from_pretrained(folder)(texts)["input_ids"]
    ours = Tokenizer.load(folder)
    assert [ours.encode([text], max_tokens=20).ids.tolist() for text in texts] == theirs
    assert theirs[0] == theirs[1]


def test_no_tokenizer_at_all(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    assert "has no tokenizer" in refused(folder)


@pytest.mark.parametrize("left", [(), ("config.json",), ("config.json", "tokenizer.json")])
def test_an_adapter_alone_names_its_base(folder: Path, tmp_path: Path, left: Any) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    for name in left:
        shutil.copy(folder / name, adapter)
    about = {"base_model_name_or_path": "roberta-base", "peft_type": "LORA"}
    (adapter / "adapter_config.json").write_text(json.dumps(about))
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    said = refused(adapter)
    assert "an adapter of 'roberta-base'" in said
    assert "merge_and_unload" in said


@pytest.mark.parametrize(
    ("family", "key", "value", "right"),
    [
        ("modernbert", "layer_types", ["full_attention"], "one per layer"),
        ("modernbert", "rope_scaling", {"rope_type": "yarn"}, "only None is supported"),
        ("modernbert", "local_attention", 1, "a whole number from 2"),
        ("deberta-v2", "position_biased_input", True, "it should be false"),
        ("deberta-v2", "relative_attention", False, "it should be true"),
        ("deberta-v2", "conv_kernel_size", 3, "only 0 is supported"),
        ("electra", "embedding_size", 0, "a whole number above 0"),
        ("distilbert", "n_heads", 3, "not a multiple of n_heads"),
        ("roberta", "max_position_embeddings", 2, "above 2"),
    ],
)
def test_a_key_that_is_not_supported_is_named(
    make_family: Any, tmp_path: Path, family: str, key: str, value: Any, right: str
) -> None:
    folder = tmp_path / family
    shutil.copytree(make_family(family), folder)
    change(folder, **{key: value})
    said = refused(folder)
    assert key in said
    assert right in said


def test_a_missing_key_means_what_transformers_takes_it_for(
    make_family: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "deberta"
    shutil.copytree(make_family("deberta-v2"), folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("position_biased_input")
    (folder / "config.json").write_text(json.dumps(config))
    assert "position_biased_input is True; it should be false" in refused(folder)


@torch.inference_mode()
def test_the_first_layers_are_an_encoder_of_their_own(family: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    full, shallow = load_encoder(family).eval(), load_encoder(family, layers=1).eval()
    host = Tokenizer.load(family).encode(["a quiet film that stays"], max_tokens=24)
    tokens = DeviceTokens.from_host(host, torch.device("cpu"))
    after_one, _ = full.states(tokens, depths=[1, full.config.layers])
    assert torch.equal(shallow(tokens), after_one)
    save_encoder(shallow, tmp_path / "shallow")
    peer = AutoModel.from_pretrained(tmp_path / "shallow", attn_implementation="eager").eval()
    theirs = peer(torch.from_numpy(host.ids[None].astype("int64"))).last_hidden_state[0]
    torch.testing.assert_close(after_one, theirs, atol=1e-4, rtol=1e-4)
