"""DeBERTa's attention by one kernel for all rows, against attention by blocks."""

from __future__ import annotations

import pytest
import torch

from tercet.nn import device_tokens, disentangled
from tercet.nn.architectures.deberta import DebertaConfig
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.plan import padded_blocks

LENGTHS = [5, 17, 1, 33, 8, 70, 2, 128, 31]


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("comparisons", [["c2p", "p2c"], ["c2p"], ["p2c"]])
def test_the_kernel_gives_what_blocks_give(make_tokens, monkeypatch, comparisons, shares):
    pytest.importorskip("tercet.nn.launches")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = DebertaConfig.model_validate(
        {
            "vocab_size": 50,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 40,
            "hidden_act": "gelu",
            "max_position_embeddings": 128,
            "position_buckets": 16,
            "relative_attention": True,
            "max_relative_positions": -1,
            "position_biased_input": False,
            "pos_att_type": comparisons,
            "share_att_key": shares,
            "norm_rel_ebd": "layer_norm",
        }
    )
    torch.manual_seed(0)
    encoder = Encoder(config).to(device).eval()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(4.0)  # so that distances matter
    # The plan of a GPU: tokens keep their places.
    monkeypatch.setattr(device_tokens, "exact_blocks", padded_blocks)
    rows = [torch.randint(5, 50, (length,)).tolist() for length in LENGTHS]
    tokens = DeviceTokens.from_host(make_tokens(rows), device)
    with torch.inference_mode():
        expected = encoder(tokens)
        monkeypatch.setattr(disentangled, "takes_kernel", lambda *_: True)
        found = encoder(tokens)
        encoder.relations.table.weight.zero_()
        encoder.relations.norm.bias.zero_()
        without_distances = encoder(tokens)
    near = 2e-2 if device.type == "cuda" else 2e-5  # a GPU multiplies in TF32
    torch.testing.assert_close(found, expected, atol=near, rtol=0)
    assert (without_distances - expected).abs().max() > 0.1
