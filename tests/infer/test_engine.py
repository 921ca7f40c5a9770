from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tercet.infer import base as base_module
from tercet.infer import engine as engine_module
from tercet.infer.engine import Engine
from tercet.infer.half import half_network
from tercet.network.network import Network
from tercet.nn.folder import load_encoder
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer

GRADED = TaskSpec.model_validate(
    {
        "data": {"layout": "cs224n-sts"},
        "range": [0, 5],
        "bi": {
            "head": {"kind": "features", "features": ["absdiff", "product"], "hidden": [8]},
            "objective": {"kind": "mean-squared-error"},
        },
        "cross": {
            "head": {"kind": "mlp"},
            "objective": {"kind": "mean-squared-error"},
        },
    }
)
TEXTS = ["a film", "the plot is dull and long , but the cast is fine", "good", "", "a film", "x y"]
OTHERS = ["the film", "a film", "good", "bad", "a film", "z"]


@pytest.fixture
def tokenizer(tiny_encoder: Path) -> Tokenizer:
    return Tokenizer.load(tiny_encoder)


@pytest.fixture
def engine(tiny_encoder: Path, tokenizer: Tokenizer) -> Engine:
    torch.manual_seed(0)
    network = Network(load_encoder(tiny_encoder), pooling="mean", tasks={"similarity": GRADED})
    return Engine(network, tokenizer.template, 32)


def columns(tokenizer: Tokenizer):
    return [tokenizer.pieces(side, limit=32) for side in (TEXTS, OTHERS)]


@pytest.mark.parametrize("mode", ["bi", "cross"])
def test_small_batches_give_what_one_batch_gives(engine, tokenizer, mode, monkeypatch) -> None:
    whole = engine.outputs("similarity", mode, columns(tokenizer))
    monkeypatch.setattr(engine_module, "CPU_BUDGET", 12)
    monkeypatch.setattr(base_module, "HEAD_ROWS", 2)
    parts = engine.outputs("similarity", mode, columns(tokenizer))
    assert whole.shape == (6, 1)
    assert np.abs(whole - parts).max() < 1e-5


def test_side_by_side_gives_what_one_thread_gives(engine, tokenizer, monkeypatch) -> None:
    texts = columns(tokenizer)[0]
    whole = engine.vectors(texts)
    monkeypatch.setattr(engine_module, "CPU_BUDGET", 12)
    monkeypatch.setattr(engine_module, "LEAST", 12)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen: list[tuple[int, int]] = []
        vectors = engine.network.vectors
        alone: list[int] = []

        def watched(tokens):
            alone.append(torch.get_num_threads())
            return vectors(tokens)

        monkeypatch.setattr(engine.network, "vectors", watched)
        parts = engine.vectors(texts, progress=lambda done, of: seen.append((done, of)))
        with ThreadPoolExecutor(1) as other:
            threads = [torch.get_num_threads(), other.submit(torch.get_num_threads).result()]
    finally:
        torch.set_num_threads(before)
    assert np.abs(whole - parts).max() < 1e-5
    assert len(seen) > 2
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    assert threads == [2, 2]
    # Two batches at once on two cores: neither may spread over both.
    assert set(alone) == {1}


def test_the_bi_mode_gives_what_the_network_gives_for_both_columns(engine, tokenizer) -> None:
    from tercet.nn.device_tokens import DeviceTokens
    from tercet.text.tokens import Tokens

    sides = [engine.template.single(side, max_tokens=32) for side in columns(tokenizer)]
    engine.network.eval()
    with torch.inference_mode():
        tokens = DeviceTokens.from_host(Tokens.concat(sides), torch.device("cpu"))
        direct = engine.network.outputs("similarity", "bi", tokens).numpy()
    assert np.abs(engine.outputs("similarity", "bi", columns(tokenizer)) - direct).max() < 1e-5


def test_a_repeated_text_is_encoded_once(engine, tokenizer) -> None:
    seen = []
    engine.outputs(
        "similarity", "bi", columns(tokenizer), progress=lambda done, of: seen.append((done, of))
    )
    distinct_texts = len({*TEXTS, *OTHERS})
    assert seen[-1] == (distinct_texts, distinct_texts)


def test_no_rows_give_no_results(engine, tokenizer) -> None:
    empty = tokenizer.pieces([], limit=32)
    assert engine.vectors(empty).shape == (0, 32)
    assert engine.outputs("similarity", "bi", [empty, empty]).shape == (0, 1)
    assert engine.predictions("similarity", "cross", [empty, empty]).shape == (0,)


def test_modes_and_gradients_are_left_as_they_were(engine, tokenizer) -> None:
    network = engine.network.train()
    network.encoder.layers[0].eval()
    before = [module.training for module in network.modules()]
    first = engine.vectors(columns(tokenizer)[0])
    assert (first == engine.vectors(columns(tokenizer)[0])).all()  # so dropout was off
    assert [module.training for module in network.modules()] == before
    assert torch.is_grad_enabled()


def test_bf16_is_near_fp32(engine, tokenizer) -> None:
    texts = columns(tokenizer)[0]
    rough = Engine(engine.network, engine.template, 32, bf16=True).vectors(texts)
    exact = engine.vectors(texts)
    assert 0 < np.abs(rough - exact).max() < 0.1


@pytest.mark.parametrize("mode", ["bi", "cross"])
def test_a_half_network_is_near_the_whole_and_leaves_it_alone(engine, tokenizer, mode) -> None:
    before = {name: tensor.clone() for name, tensor in engine.network.state_dict().items()}
    half = replace(engine, half=half_network(engine.network))
    exact = engine.outputs("similarity", mode, columns(tokenizer))
    rough = half.outputs("similarity", mode, columns(tokenizer))
    # Its random weights are large: bf16 moves them far more than those of a trained encoder.
    assert 0 < np.abs(rough - exact).max() < 0.2
    assert rough.dtype == np.float32
    after = engine.network.state_dict()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    assert b"".join(half.encoder_bytes()) == b"".join(engine.encoder_bytes())


def test_half_networks_keep_heads_and_pooler_in_float32(engine) -> None:
    half = half_network(engine.network)
    assert {weight.dtype for weight in half.heads.parameters()} == {torch.float32}
    assert half.heads is engine.network.heads
    assert half.encoder.pooler is engine.network.encoder.pooler
    assert half.encoder.layers[0].attention.qkv.weight.dtype == torch.bfloat16
