from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tercet.errors import TercetError
from tercet.nn.architectures.mpnet import MpnetConfig
from tercet.nn.architectures.record import Activation
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder, activate, add
from tercet.nn.folder import load_encoder
from tercet.nn.names import to_hugging_face
from tercet.nn.pooling import pool
from tercet.nn.relative import RelativeBias
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Tokens

CPU = torch.device("cpu")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@pytest.fixture(scope="session")
def base_shape(tmp_path_factory) -> Path:
    """A random bert-base: 12 layers, 768 wide."""
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("bert-base")
    torch.manual_seed(0)
    BertModel(BertConfig()).save_pretrained(folder)
    return folder


@pytest.fixture(params=["tiny_encoder", "tiny_mpnet"])
def tiny(request) -> Path:
    return request.getfixturevalue(request.param)


@pytest.fixture
def still_encoder(tiny) -> Encoder:
    return load_encoder(tiny).eval()


@pytest.fixture(params=["tiny_encoder", "tiny_mpnet", "minilm", "mpnet", "base_shape"])
def folder(request) -> Path:
    return request.getfixturevalue(request.param)


def reference(folder: Path) -> Any:
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder, attn_implementation="eager", dtype="float32").eval()


def padded(tokens: Tokens, values: np.ndarray, *, fill: int) -> Tensor:
    batch = torch.full((len(tokens), tokens.longest), fill)
    for row, (start, end) in enumerate(zip(tokens.offsets, tokens.offsets[1:], strict=False)):
        batch[row, : end - start] = torch.from_numpy(values[start:end].astype(np.int64))
    return batch


def their_hidden(model: Any, tokens: Tokens) -> tuple[Tensor, Tensor]:
    """Hidden states of the real tokens [total, width], and what their pooler gives [n, width]."""
    inputs = {
        "input_ids": padded(tokens, tokens.ids, fill=model.config.pad_token_id),
        "attention_mask": padded(tokens, np.ones_like(tokens.ids), fill=0),
    }
    if model.config.model_type == "bert":
        inputs["token_type_ids"] = padded(tokens, tokens.types, fill=0)
    answer = model(**inputs)
    return answer.last_hidden_state[inputs["attention_mask"].bool()], answer.pooler_output


def real_tokens(folder: Path, sentences: list[str]) -> Tokens:
    """Tokens of sentences; a folder without a tokenizer gets ids of the same lengths."""
    if (folder / "tokenizer.json").exists():
        return Tokenizer.load(folder).encode(sentences, max_tokens=64)
    lengths = [2 + len(sentence.split()) for sentence in sentences]
    ids = np.random.default_rng(0).integers(1, 30000, sum(lengths)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(ids, np.zeros_like(ids), offsets, longest=max(lengths), truncated=0)


def test_hidden_states_and_pooler_equal_those_of_transformers(folder, sentences):
    tokens = real_tokens(folder, sentences)
    encoder = load_encoder(folder).eval()
    here = DeviceTokens.from_host(tokens, CPU)
    with torch.no_grad():
        hidden = encoder(here)
        pooled = pool(hidden, here, how="pooler", pooler=encoder.pooler)
        their, their_pooled = their_hidden(reference(folder), tokens)
    assert (hidden - their).abs().max() <= 2e-5
    assert (pooled - their_pooled).abs().max() <= 2e-5


@pytest.mark.parametrize("source", ["tiny_encoder", "tiny_mpnet", "minilm", "base_shape"])
def test_gradients_equal_those_of_transformers(source, request, sentences):
    folder = request.getfixturevalue(source)
    tokens = real_tokens(folder, sentences[:4])
    # Eager attention in training mode would drop; without rates both are exact.
    encoder = load_encoder(folder, dropout=0.0, attention_dropout=0.0)
    here = DeviceTokens.from_host(tokens, CPU)
    model = reference(folder)
    torch.manual_seed(0)
    hidden = encoder(here)
    weights = torch.randn_like(hidden)
    pooled = pool(hidden, here, how="pooler", pooler=encoder.pooler)
    ((hidden * weights).mean() + pooled.pow(2).mean()).backward()
    their, their_pooled = their_hidden(model, tokens)
    ((their * weights).mean() + their_pooled.pow(2).mean()).backward()

    ours = to_hugging_face(
        {name: parameter.grad for name, parameter in encoder.named_parameters()},
        encoder.config.architecture,
    )
    theirs = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert ours.keys() == theirs.keys()
    # Keys' biases have no effect: their gradients are nothing but rounding.
    floor = 1e-3 * max(gradient.norm() for gradient in theirs.values())
    for name, gradient in theirs.items():
        assert (ours[name] - gradient).norm() <= 1e-4 * max(gradient.norm(), floor), name


def test_joined_pairs_with_types_equal_those_of_transformers(tiny, sentences, encode_pairs):
    pairs = list(zip(sentences, reversed(sentences), strict=True))
    tokens = encode_pairs(Tokenizer.load(tiny), pairs, max_tokens=60)
    assert tokens.types.any() == ("bert" in tiny.name)
    encoder = load_encoder(tiny).eval()
    with torch.no_grad():
        hidden = encoder(DeviceTokens.from_host(tokens, CPU))
        their, _ = their_hidden(reference(tiny), tokens)
    assert (hidden - their).abs().max() <= 2e-5


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_each_activation_equals_that_of_transformers(activation, tmp_path, make_tokens):
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=20, intermediate_size=32, hidden_act=activation, **shape)
    config.initializer_range = 0.5
    BertModel(config).save_pretrained(tmp_path)
    tokens = make_tokens([[3, 4, 5], [6]])
    with torch.no_grad():
        hidden = load_encoder(tmp_path).eval()(DeviceTokens.from_host(tokens, CPU))
        their, _ = their_hidden(reference(tmp_path), tokens)
    assert (hidden - their).abs().max() <= 2e-5


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_order_and_company_do_not_change_a_row(still_encoder, make_tokens, data):
    encoder = still_encoder
    ids = st.integers(0, encoder.config.vocabulary - 1)
    rows = data.draw(st.lists(st.lists(ids, min_size=1, max_size=20), min_size=1, max_size=8))
    order = data.draw(st.permutations(range(len(rows))))
    with torch.no_grad():
        together = encoder(DeviceTokens.from_host(make_tokens([rows[i] for i in order]), CPU))
        alone = [encoder(DeviceTokens.from_host(make_tokens([rows[i]]), CPU)) for i in order]
    assert (together - torch.cat(alone)).abs().max() <= 1e-5


def test_the_relative_bias_equals_that_of_transformers():
    from transformers import MPNetConfig
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    their = MPNetEncoder(MPNetConfig(num_hidden_layers=0, num_attention_heads=4, hidden_size=8))
    shape = {"vocabulary": 10, "width": 8, "layers": 1, "heads": 4, "feed_forward": 8}
    bias = RelativeBias(MpnetConfig(**shape, positions=514))
    bias.table.weight = their.relative_attention_bias.weight
    for span in (1, 2, 37, 400, 520):
        expected = their.compute_position_bias(torch.zeros(1, span, 8))[0]
        assert torch.equal(bias(span), expected)


def test_dropout_works_in_training_alone(tiny, sentences):
    here = DeviceTokens.from_host(real_tokens(tiny, sentences), CPU)
    encoder = load_encoder(tiny)
    assert not torch.equal(encoder(here), encoder(here))
    torch.manual_seed(5)
    first = encoder(here)
    torch.manual_seed(5)
    assert torch.equal(first, encoder(here))
    encoder.eval()
    assert torch.equal(encoder(here), encoder(here))
    without_dropout = load_encoder(tiny, dropout=0.0, attention_dropout=0.0)
    torch.testing.assert_close(without_dropout(here), encoder(here), atol=1e-5, rtol=0)
    attention_alone = load_encoder(tiny, dropout=0.0, attention_dropout=0.3)
    assert not torch.equal(attention_alone(here), attention_alone(here))


def test_bfloat16_by_autocast_and_by_weights_stays_near(tiny, sentences):
    here = DeviceTokens.from_host(real_tokens(tiny, sentences), CPU)
    encoder = load_encoder(tiny, dropout=0.0, attention_dropout=0.1)
    exact = encoder.eval()(here).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        near = encoder(here)
        encoder.train()
        encoder(here).float().pow(2).mean().backward()
    torch.testing.assert_close(near.float(), exact, atol=0.15, rtol=0)
    assert all(torch.isfinite(p.grad).all() for p in encoder.layers.parameters())
    half = encoder.eval().to(torch.bfloat16)(here)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), exact, atol=0.15, rtol=0)


def test_a_row_that_is_too_long_is_a_clear_mistake(tiny, make_tokens):
    encoder = load_encoder(tiny).eval()
    encoder(DeviceTokens.from_host(make_tokens([[5] * 64]), CPU))
    with pytest.raises(TercetError, match=r"65 tokens.* 64 at most"):
        encoder(DeviceTokens.from_host(make_tokens([[5] * 65]), CPU))


def test_an_empty_batch_gives_nothing(tiny, make_tokens):
    encoder = load_encoder(tiny).eval()
    tokens = DeviceTokens.from_host(make_tokens([]), CPU)
    hidden = encoder(tokens)
    assert hidden.shape == (0, encoder.config.width)
    for how in ("cls", "pooler", "mean", "max"):
        assert pool(hidden, tokens, how=how, pooler=encoder.pooler).shape == (0, 32)


def test_a_new_encoder_starts_random_and_small(tiny):
    config = load_encoder(tiny).config.replace(pooler=False)
    torch.manual_seed(0)
    encoder = Encoder(config)
    assert encoder.pooler is None
    assert 0.015 < encoder.layers[0].attention.qkv.weight.std() < 0.025
    assert not encoder.layers[0].attention.qkv.bias.any()


@needs_cuda
@pytest.mark.parametrize("precision", ["fp32", "autocast", "weights"])
def test_cuda_agrees_with_the_cpu_and_never_waits(tiny, sentences, precision):
    tokens = real_tokens(tiny, sentences)
    exact = load_encoder(tiny).eval()(DeviceTokens.from_host(tokens, CPU)).detach()
    cuda = torch.device("cuda")
    encoder = load_encoder(tiny).eval().to(cuda)
    if precision == "weights":
        encoder = encoder.to(torch.bfloat16)
    # Kernels are loaded at first use, which waits; the second pass must not.
    for mode in ("default", "error"):
        torch.cuda.set_sync_debug_mode(mode)
        try:
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == "autocast"):
                here = DeviceTokens.from_host(tokens, cuda)
                hidden = encoder(here)
                for how in ("cls", "pooler", "mean", "max"):
                    pool(hidden, here, how=how, pooler=encoder.pooler).float().sum().backward(
                        retain_graph=True
                    )
                encoder.train()(here)
                encoder.eval()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    tolerance = 2e-3 if precision == "fp32" else 0.15
    torch.testing.assert_close(hidden.detach().float().cpu(), exact, atol=tolerance, rtol=0)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_what_is_done_in_place_equals_what_is_not(activation: Activation) -> None:
    expanded, hidden = torch.randn(5, 8), torch.randn(5, 8)
    expected = hidden + activate(expanded, activation)
    with torch.no_grad():
        assert torch.equal(add(hidden, activate(expanded.clone(), activation)), expected)


def test_a_sum_without_gradients_keeps_the_wider_type() -> None:
    hidden, added = torch.randn(5, 8), torch.randn(5, 8).bfloat16()
    with torch.no_grad():
        assert torch.equal(add(hidden, added), hidden + added.float())
