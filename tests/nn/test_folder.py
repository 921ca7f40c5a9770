from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tercet.errors import TercetError
from tercet.nn.folder import load_encoder, save_encoder

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 90868376\n"
BUFFERS = ("position_ids", "token_type_ids")


@pytest.fixture(params=["tiny_encoder", "tiny_mpnet"])
def tiny(request) -> Path:
    return request.getfixturevalue(request.param)


@pytest.fixture
def copy(tiny_encoder, tmp_path) -> Path:
    """A folder that a test may spoil."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "copy"))


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def reconfigure(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in config.items() if value != "gone"}))


def same(folder: Path, other: Path) -> bool:
    first, second = load_encoder(folder).state_dict(), load_encoder(other).state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.mark.parametrize("source", ["tiny_encoder", "tiny_mpnet", "minilm", "mpnet"])
def test_tensors_survive_load_and_save_bit_for_bit(source, request, tmp_path):
    folder = request.getfixturevalue(source)
    save_encoder(load_encoder(folder), tmp_path / "new" / "folder")
    before = load_file(folder / "model.safetensors")
    after = load_file(tmp_path / "new" / "folder" / "model.safetensors")
    assert {name for name in before if not name.endswith(BUFFERS)} == after.keys()
    assert all(torch.equal(after[name], before[name]) for name in after)
    assert not list((tmp_path / "new" / "folder").glob(".*"))


def test_transformers_loads_what_was_saved(tiny, tmp_path):
    from transformers import AutoModel

    save_encoder(load_encoder(tiny, dropout=0.25), tmp_path)
    model, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values())
    assert model.config.hidden_dropout_prob == 0.25
    theirs = AutoModel.from_pretrained(tiny).state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.state_dict().items())


def test_an_encoder_can_be_saved_over_the_folder_it_came_from(copy, tiny_encoder):
    save_encoder(load_encoder(copy), copy)
    assert same(copy, tiny_encoder)


def test_prefixes_old_norm_names_heads_and_buffers_load(copy, tiny_encoder):
    def age(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        old = {
            f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): tensor
            for name, tensor in tensors.items()
        }
        extra = {
            "cls.predictions.bias": torch.zeros(5),
            "bert.embeddings.position_ids": torch.arange(64)[None],
        }
        return {**old, **extra}

    rewrite(copy, age)
    assert same(copy, tiny_encoder)


def test_a_folder_without_a_pooler_loads_and_saves_without(copy, tmp_path):
    rewrite(copy, lambda t: {k: v for k, v in t.items() if not k.startswith("pooler.")})
    encoder = load_encoder(copy)
    assert encoder.pooler is None
    save_encoder(encoder, tmp_path / "again")
    assert load_encoder(tmp_path / "again").pooler is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_loads_as_float32_and_says_so_when_saved(copy, tmp_path, dtype):
    from transformers import AutoModel

    rewrite(copy, lambda t: {name: tensor.to(dtype) for name, tensor in t.items()})
    reconfigure(copy, dtype=str(dtype).removeprefix("torch."))
    encoder = load_encoder(copy)
    assert {parameter.dtype for parameter in encoder.parameters()} == {torch.float32}
    save_encoder(encoder, tmp_path / "again")
    assert AutoModel.from_pretrained(tmp_path / "again").dtype == torch.float32
    assert same(copy, tmp_path / "again")


def test_shards_load_like_one_file(copy, tiny_encoder):
    tensors = load_file(copy / "model.safetensors")
    names = sorted(tensors)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for shard, inside in shards.items():
        save_file({name: tensors[name] for name in inside}, copy / shard)
    places = {name: shard for shard, inside in shards.items() for name in inside}
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (copy / "model.safetensors").unlink()
    assert same(copy, tiny_encoder)
    (copy / "b.safetensors").unlink()
    with pytest.raises(TercetError, match=r"b\.safetensors does not exist"):
        load_encoder(copy)
    places["pooler.dense.bias"] = "../elsewhere.safetensors"
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(TercetError, match="file of this folder"):
        load_encoder(copy)


def test_rates_come_from_config_unless_given(copy):
    reconfigure(copy, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    default = load_encoder(copy)
    assert (default.config.dropout, default.config.attention_dropout) == (0.2, 0.3)
    assert (default.layers[0].dropout.p, default.layers[0].attention.dropout) == (0.2, 0.3)
    changed = load_encoder(copy, dropout=0.0, attention_dropout=0.5)
    assert (changed.embeddings.dropout.p, changed.layers[1].attention.dropout) == (0.0, 0.5)
    with pytest.raises(TercetError, match="dropout is 1"):
        load_encoder(copy, dropout=1.0)


def test_loading_starts_in_training_mode_and_leaves_the_random_state_alone(copy):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    encoder = load_encoder(copy)
    assert torch.equal(before, torch.get_rng_state())
    assert encoder.training
    assert all(parameter.requires_grad for parameter in encoder.parameters())


SPOILT_CONFIGS = {
    "hidden_act": ("swish", "gelu, gelu_new, relu"),
    "model_type": ("gpt2", "bert, mpnet"),
    "vocab_size": ("many", "whole number"),
    "hidden_size": (30, "multiple of num_attention_heads"),
    "num_hidden_layers": ("gone", "missing"),
    "hidden_dropout_prob": (1.5, "below 1"),
    "layer_norm_eps": (-1, "number from 0"),
    "position_embedding_type": ("relative_key", "absolute"),
    "is_decoder": (True, "False"),
    "pad_token_id": (-3, "token id"),
}


@pytest.mark.parametrize("key", SPOILT_CONFIGS)
def test_a_wrong_config_is_named_by_file_and_key(copy, key):
    value, hint = SPOILT_CONFIGS[key]
    reconfigure(copy, **{key: value})
    with pytest.raises(TercetError, match=rf"config\.json: {key}.*{hint}"):
        load_encoder(copy)


def spoil(name: str, content: bytes | None) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)

    return change


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickle_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def fewer_layers(folder: Path) -> None:
    reconfigure(folder, num_hidden_layers=1)


def more_layers(folder: Path) -> None:
    reconfigure(folder, num_hidden_layers=3)


def other_width(folder: Path) -> None:
    reconfigure(folder, hidden_size=16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoil("config.json", None), r"config\.json does not exist"),
        (spoil("config.json", b"{"), r"config\.json is not valid JSON"),
        (spoil("config.json", b"[1]"), r"config\.json holds a JSON list"),
        (spoil("config.json", b"\xff\xfe{"), r"config\.json is not a text file"),
        (spoil("model.safetensors", None), r"has no model\.safetensors"),
        (spoil("model.safetensors", b""), r"model\.safetensors is not a whole"),
        (spoil("model.safetensors", b"no tensors at all"), r"model\.safetensors is not a whole"),
        (cut, r"model\.safetensors is not a whole"),
        (spoil("model.safetensors", POINTER), r"model\.safetensors is a pointer of Git LFS"),
        (pickle_only, r"pytorch_model\.bin.*save_pretrained"),
        (fewer_layers, r"tensor 'encoder\.layer\.1\..* more has no place"),
        (more_layers, r"tensor 'encoder\.layer\.2\..* is missing"),
        (other_width, r"has shape .* requires"),
    ],
)
def test_a_broken_folder_is_reported_in_one_sentence(copy, change, message):
    change(copy)
    with pytest.raises(TercetError, match=message) as caught:
        load_encoder(copy)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_and_an_unwritable_one_are_reported(copy):
    with pytest.raises(TercetError, match="is not a folder"):
        load_encoder(copy / "nowhere")
    with pytest.raises(TercetError, match="cannot be made"):
        save_encoder(load_encoder(copy), copy / "config.json" / "inside")


def test_loading_leaves_the_compiler_alone(tiny_encoder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tercet.nn.folder import load_encoder\n"
        f"load_encoder(Path({str(tiny_encoder)!r})); print('torch._dynamo' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.stdout.strip(), result.stderr) == ("False", "")
