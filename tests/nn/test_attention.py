from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tercet.nn import attention, device_tokens
from tercet.nn.attention import AttentionInputs, SelfAttention, attend_blocks, attend_varlen
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.plan import padded_blocks

LENGTHS = [5, 17, 1, 5, 33, 8, 17, 2, 40]
HEADS, HEAD_WIDTH = 4, 8
CPU = torch.device("cpu")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


def by_definition(qkv: Tensor, lengths: list[int], bias: Tensor | None) -> Tensor:
    """Row by row, in float64."""
    parts = []
    for row in qkv.double().split(lengths):
        query, key, value = row.permute(1, 2, 0, 3)
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
        if bias is not None:
            scores = scores + bias[:, : len(row), : len(row)]
        parts.append((scores.softmax(-1) @ value).transpose(0, 1))
    return torch.cat(parts)


@pytest.fixture(params=["exact", "padded"])
def tokens(request, make_tokens, monkeypatch) -> DeviceTokens:
    """The same rows under the plan of each kind of device, on the CPU."""
    if request.param == "padded":
        monkeypatch.setattr(device_tokens, "exact_blocks", padded_blocks)
    return DeviceTokens.from_host(make_tokens([[1] * length for length in LENGTHS]), CPU)


def planned(values: Tensor, tokens: DeviceTokens) -> Tensor:
    return values if tokens.plan.order is None else values[tokens.plan.order]


def restored(values: Tensor, tokens: DeviceTokens) -> Tensor:
    return values if tokens.plan.places is None else values[tokens.plan.places]


@pytest.mark.parametrize("biased", [False, True])
def test_blocks_attend_within_each_row_only(tokens, biased):
    torch.manual_seed(0)
    qkv = torch.randn(sum(LENGTHS), 3, HEADS, HEAD_WIDTH, requires_grad=True)
    bias = torch.randn(HEADS, 40, 40, requires_grad=True) if biased else None
    inputs = AttentionInputs.prepare(tokens, bias=bias, dtype=qkv.dtype, head_width=HEAD_WIDTH)
    mixed = restored(attend_blocks(planned(qkv, tokens), inputs, dropout=0.0), tokens)
    expected = by_definition(qkv, LENGTHS, bias)
    torch.testing.assert_close(mixed.double(), expected, atol=2e-6, rtol=0)

    inner = [qkv] if bias is None else [qkv, bias]
    weights = torch.randn_like(mixed)
    for result, right in zip(
        torch.autograd.grad((mixed * weights).sum(), inner),
        torch.autograd.grad((expected * weights).sum(), inner),
        strict=True,
    ):
        torch.testing.assert_close(result, right, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_gives_the_same_however_blocks_are_merged(make_tokens, biased, dtype):
    rows = [[1] * length for length in LENGTHS]
    tokens = DeviceTokens.from_host(make_tokens(rows), CPU)
    torch.manual_seed(0)
    qkv = torch.randn(sum(LENGTHS), 3, HEADS, HEAD_WIDTH).to(dtype).requires_grad_()
    bias = torch.randn(HEADS, 40, 40, requires_grad=True) if biased else None
    merged = AttentionInputs.prepare(tokens, bias=bias, dtype=dtype, head_width=HEAD_WIDTH)
    assert merged.merged is not None
    assert len(merged.merged) < len(tokens.plan.blocks)
    results = []
    for inputs in (merged, replace(merged, merged=None)):
        torch.manual_seed(1)
        mixed = attend_blocks(qkv, inputs, dropout=0.3)
        inner = [qkv] if bias is None else [qkv, bias]
        weights = torch.arange(mixed.numel()).view_as(mixed) % 7
        results.append([mixed, *torch.autograd.grad((mixed.float() * weights).sum(), inner)])
    for own, right in zip(*results, strict=True):
        near = 1e-4 if dtype == torch.float32 else 0.06
        torch.testing.assert_close(own, right, atol=near, rtol=near)


def test_far_longer_rows_are_not_merged(make_tokens):
    tokens = DeviceTokens.from_host(make_tokens([[1] * n for n in [4, 5, 6] * 20 + [300]]), CPU)
    inputs = AttentionInputs.prepare(tokens, bias=None, dtype=torch.float32, head_width=HEAD_WIDTH)
    assert inputs.merged is not None
    assert [each.length for each in inputs.merged] == [6, 300]
    with torch.no_grad():
        asked = AttentionInputs.prepare(
            tokens, bias=None, dtype=torch.float32, head_width=HEAD_WIDTH
        )
    assert asked.merged is None


def test_the_kernel_with_a_bias_attends_within_each_row_only(make_tokens):
    launches = pytest.importorskip("tercet.nn.launches")
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    lengths = [*LENGTHS, 128, 65]
    tokens = DeviceTokens.from_host(make_tokens([[1] * length for length in lengths]), device)
    qkv = torch.randn(sum(lengths), 3, 2, 16, device=device)
    bias = torch.randn(2, 128, 128, device=device)
    mixed = launches.attend_ragged(qkv, tokens, bias)
    expected = by_definition(qkv, lengths, bias)
    near = 5e-3 if device.type == "cuda" else 2e-6  # a GPU multiplies in TF32
    torch.testing.assert_close(mixed.double(), expected, atol=near, rtol=0)


@pytest.mark.parametrize(
    ("tokens_in_all", "longest", "inference", "taken"),
    [(8192, 128, True, True), (8191, 128, True, False), (8192, 129, True, False)]
    + [(8192, 128, False, False)],
)
def test_large_batches_in_inference_take_the_kernel_with_a_bias(
    make_tokens, monkeypatch, tokens_in_all, longest, inference, taken
):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokens = DeviceTokens.from_host(make_tokens([[1] * longest]), device)
    ids = torch.zeros(tokens_in_all, dtype=torch.int64, device=device)
    monkeypatch.setattr(attention, "_can_compile", lambda device: True)
    tokens = replace(tokens, ids=ids)
    with torch.inference_mode(inference):
        inputs = AttentionInputs.prepare(
            tokens, bias=torch.zeros(2, 136, 136, device=device), dtype=torch.bfloat16,
            head_width=64,
        )  # fmt: skip
    assert (inputs.ragged_bias is not None) is taken


def test_attention_dropout_works_in_training_alone_and_keeps_the_mean(tokens):
    torch.manual_seed(0)
    layer = SelfAttention(width=HEADS * HEAD_WIDTH, heads=HEADS, dropout=0.3)
    hidden = torch.randn(sum(LENGTHS), HEADS * HEAD_WIDTH)
    inputs = AttentionInputs.prepare(tokens, bias=None, dtype=torch.float32, head_width=HEAD_WIDTH)
    with torch.no_grad():
        draws = torch.stack([layer(hidden, inputs) for _ in range(150)])
        still = layer.eval()(hidden, inputs)
        assert torch.equal(still, layer(hidden, inputs))
    assert not torch.equal(draws[0], draws[1])
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - still).abs() < 6 * error + 1e-6).all()


def test_attention_dropout_drops_weights_at_its_rate(make_tokens):
    """With equal keys and one-hot values the output shows the weights themselves."""
    torch.manual_seed(0)
    length = 16
    tokens = DeviceTokens.from_host(make_tokens([[1] * length] * 64), CPU)
    qkv = torch.zeros(64, length, 3, 1, length)
    qkv[:, :, 2, 0] = torch.eye(length)
    inputs = AttentionInputs.prepare(tokens, bias=None, dtype=qkv.dtype, head_width=length)
    weights = attend_blocks(qkv.flatten(0, 1), inputs, dropout=0.25) * length
    is_kept = weights > 0
    assert abs(is_kept.float().mean().item() - 0.75) < 0.02
    torch.testing.assert_close(weights[is_kept], torch.full_like(weights[is_kept], 1 / 0.75))


def test_an_empty_batch_gives_nothing(make_tokens):
    tokens = DeviceTokens.from_host(make_tokens([]), CPU)
    inputs = AttentionInputs.prepare(tokens, bias=None, dtype=torch.float32, head_width=8)
    assert attend_blocks(torch.zeros(0, 3, 2, 8), inputs, dropout=0.1).shape == (0, 2, 8)


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_variable_length_kernel_equals_the_blocks(make_tokens, dtype):
    torch.manual_seed(0)
    device = torch.device("cuda")
    tokens = DeviceTokens.from_host(make_tokens([[1] * length for length in LENGTHS]), device)
    chosen = AttentionInputs.prepare(tokens, bias=None, dtype=dtype, head_width=64)
    assert chosen.varlen
    assert not AttentionInputs.prepare(tokens, bias=None, dtype=torch.float32, head_width=64).varlen
    blocks = AttentionInputs.prepare(
        tokens, bias=torch.zeros(4, 40, 40, device=device), dtype=dtype, head_width=64
    )
    assert not blocks.varlen
    qkv = torch.randn(sum(LENGTHS), 3, 4, 64, device=device, dtype=dtype, requires_grad=True)
    weights = torch.randn(sum(LENGTHS), 4, 64, device=device, dtype=dtype)
    results = [attend_varlen(qkv, chosen, dropout=0.0), attend_blocks(qkv, blocks, dropout=0.0)]
    torch.testing.assert_close(*results, atol=2e-2, rtol=2e-2)
    gradients = [torch.autograd.grad((mixed * weights).sum(), qkv)[0] for mixed in results]
    torch.testing.assert_close(*gradients, atol=4e-2, rtol=4e-2)


@needs_cuda
def test_the_variable_length_kernel_drops_weights_at_its_rate(make_tokens):
    torch.manual_seed(0)
    device, length = torch.device("cuda"), 16
    tokens = DeviceTokens.from_host(make_tokens([[1] * length] * 64), device)
    qkv = torch.zeros(64, length, 3, 1, length, device=device, dtype=torch.bfloat16)
    qkv[:, :, 2, 0] = torch.eye(length)
    inputs = AttentionInputs.prepare(tokens, bias=None, dtype=qkv.dtype, head_width=length)
    assert inputs.varlen
    weights = attend_varlen(qkv.flatten(0, 1), inputs, dropout=0.25).float() * length
    assert abs((weights > 0).float().mean().item() - 0.75) < 0.02
    assert abs(weights.mean().item() - 1) < 0.03
