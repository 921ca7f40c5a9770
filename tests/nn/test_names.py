from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tercet.errors import TercetError
from tercet.nn.architectures.bert import BERT, BertConfig
from tercet.nn.architectures.mpnet import MPNET, MpnetConfig
from tercet.nn.encoder import Encoder
from tercet.nn.names import from_hugging_face, plain_names, to_hugging_face

FILE = Path("model.safetensors")
SHAPE = {"vocabulary": 11, "width": 8, "layers": 12, "heads": 2, "feed_forward": 16}
CONFIGS = {
    "bert": BertConfig(positions=9, token_types=2, **SHAPE),
    "mpnet": MpnetConfig(positions=9, relative_buckets=32, **SHAPE),
}


@pytest.fixture(params=["bert", "mpnet"])
def encoder(request) -> Encoder:
    return Encoder(CONFIGS[request.param])


def back(encoder: Encoder, theirs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return from_hugging_face(
        theirs,
        {name: tensor.shape for name, tensor in encoder.state_dict().items()},
        architecture=encoder.config.architecture,
        file=FILE,
    )


def test_the_table_is_reversible(encoder):
    state = encoder.state_dict()
    there = to_hugging_face(state, encoder.config.architecture)
    again = back(encoder, there)
    assert again.keys() == state.keys()
    assert all(torch.equal(again[name], state[name]) for name in state)
    assert len({tensor.data_ptr() for tensor in there.values()}) == len(there)


def test_their_names_and_shapes_are_those_of_transformers(encoder):
    import transformers

    config = encoder.config
    kind = "Bert" if config.architecture is BERT else "MPNet"
    model = getattr(transformers, f"{kind}Model")(
        getattr(transformers, f"{kind}Config")(**config.to_json())
    )
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    ours = to_hugging_face(encoder.state_dict(), config.architecture)
    assert {name: tensor.shape for name, tensor in ours.items()} == expected


def test_prefixes_old_norms_heads_and_buffers_are_known():
    names = [
        "bert.embeddings.LayerNorm.gamma",
        "bert.embeddings.LayerNorm.beta",
        "bert.embeddings.position_ids",
        "bert.pooler.dense.weight",
        "cls.predictions.transform.LayerNorm.gamma",
        "cls.seq_relationship.weight",
        "qa_outputs.bias",
        "classifier.weight",
    ]
    assert plain_names(names, architecture=BERT, file=FILE) == {
        "embeddings.LayerNorm.weight": "bert.embeddings.LayerNorm.gamma",
        "embeddings.LayerNorm.bias": "bert.embeddings.LayerNorm.beta",
        "pooler.dense.weight": "bert.pooler.dense.weight",
    }
    heads = ["lm_head.dense.weight", "mpnet.embeddings.position_ids", "lm_head.layer_norm.bias"]
    assert plain_names(heads, architecture=MPNET, file=FILE) == {}


def test_one_tensor_under_two_names_is_refused():
    names = ["embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma"]
    with pytest.raises(TercetError, match="both"):
        plain_names(names, architecture=BERT, file=FILE)


def test_missing_unknown_and_wrong_tensors_are_named(encoder):
    theirs = to_hugging_face(encoder.state_dict(), encoder.config.architecture)
    name = "encoder.layer.10.intermediate.dense.weight"
    cases = [
        ({**theirs, "encoder.layer.12.x": torch.zeros(2, 3)}, r"'encoder.layer.12.x' \[2, 3\]"),
        ({**theirs, name: torch.zeros(8, 16)}, rf"'{name}' has shape \[8, 16\].* \[16, 8\]"),
        ({**theirs, name: torch.zeros(16, 8, dtype=torch.int8)}, rf"'{name}' is int8"),
        ({key: theirs[key] for key in theirs if key != name}, rf"'{name}' \[16, 8\] is missing"),
    ]
    for tensors, message in cases:
        with pytest.raises(TercetError, match=f"model.safetensors: tensor {message}"):
            back(encoder, tensors)
