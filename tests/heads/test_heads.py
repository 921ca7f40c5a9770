from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tercet.heads.cosine import CosineHead
from tercet.heads.dense_pair import DensePairHead
from tercet.heads.features import FEATURES, FeatureHead
from tercet.heads.mlp import MlpHead
from tercet.heads.shared import SharedLayers
from tercet.nn.cosine import cosine, cosine_matrix, unit
from tercet.specs import (
    HEADS,
    CosineHeadSpec,
    DensePairHeadSpec,
    ExemplarHeadSpec,
    FeatureHeadSpec,
    MlpHeadSpec,
    NearestHeadSpec,
)
from tercet.specs.registry import resolve

WIDTH = 6
ON_VECTORS = ["mlp", "features", "cosine", "dense-pair"]


def pair(rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, rows, WIDTH, generator=generator)
    return u.requires_grad_(), v.requires_grad_()


def implementation(kind: str) -> Any:
    return resolve(HEADS[kind].implementation)


def test_heads_build_from_the_recipes_keys() -> None:
    specs = [
        MlpHeadSpec(),
        FeatureHeadSpec(features=["u", "cosine"]),
        CosineHeadSpec(),
        DensePairHeadSpec(),
        ExemplarHeadSpec(count=5),
        NearestHeadSpec(count=5),
    ]
    assert {spec.kind for spec in specs} == set(HEADS) - {"layers"}
    for spec in specs:
        head = spec.build(width=WIDTH, outputs=1)
        vectors = pair()[: 2 if spec.kind in ("features", "cosine", "dense-pair") else 1]
        assert head(*vectors).shape == (4, 1)


@pytest.mark.parametrize(
    ("name", "activation"), [("relu", F.relu), ("tanh", torch.tanh), ("gelu", F.gelu)]
)
def test_mlp_is_linear_layers_with_the_activation_between(name: str, activation: object) -> None:
    head = MlpHead(width=WIDTH, outputs=3, hidden=[5, 4], activation=name).eval()
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    weights = [parameter for _, parameter in head.named_parameters()]
    u, _ = pair()
    expected = activation(F.linear(u, *weights[0:2]))
    expected = activation(F.linear(expected, *weights[2:4]))
    expected = F.linear(expected, *weights[4:6])
    torch.testing.assert_close(head(u), expected)


def test_mlp_without_hidden_layers_is_one_linear_layer() -> None:
    head = MlpHead(width=WIDTH, outputs=3)
    shapes = {name: tuple(value.shape) for name, value in head.state_dict().items()}
    assert shapes == {"layers.0.weight": (3, WIDTH), "layers.0.bias": (3,)}


@given(st.lists(st.sampled_from(list(FEATURES)), min_size=1, max_size=5))
def test_features_lie_side_by_side_in_the_given_order(features: list[str]) -> None:
    u, v = pair()
    by_name = {
        "u": u,
        "v": v,
        "absdiff": (u - v).abs(),
        "product": u * v,
        "dot": (u * v).sum(dim=1, keepdim=True),
        "cosine": F.cosine_similarity(u, v)[:, None],
    }
    joined = torch.cat([by_name[name] for name in features], dim=1)
    head = FeatureHead(width=WIDTH, outputs=2, features=features).eval()
    (layer,) = head.mlp.layers
    torch.testing.assert_close(head(u, v), F.linear(joined, layer.weight, layer.bias))


def test_cosine_head_is_the_cosine() -> None:
    u, v = pair()
    raw = CosineHead(width=WIDTH)(u, v)
    assert raw.shape == (4, 1)
    torch.testing.assert_close(raw[:, 0], F.cosine_similarity(u, v))
    assert not list(CosineHead(width=WIDTH).parameters())


def test_cosine_head_projects_both_vectors_alike() -> None:
    u, v = pair()
    head = CosineHead(width=WIDTH, projection=True)
    weight, bias = head.parameters()
    nn.init.normal_(bias)
    assert weight.shape == (WIDTH, WIDTH)
    expected = F.cosine_similarity(F.linear(u, weight, bias), F.linear(v, weight, bias))
    torch.testing.assert_close(head(u, v)[:, 0], expected)


def test_cosine_head_projects_to_another_width() -> None:
    head = CosineHead(width=WIDTH, projection=True, projection_width=1).eval()
    u, v = torch.randn(5, WIDTH), torch.randn(5, WIDTH)
    signs = head.projection(u).sign() * head.projection(v).sign()
    torch.testing.assert_close(head(u, v), signs)


def test_a_narrow_layer_does_not_start_near_zero() -> None:
    """With BERT's spread of 0.02 a layer of two or three inputs would hide what stands before it
    from small learning rates; torch's own start grows as layers narrow."""
    torch.manual_seed(0)
    heads = [FeatureHead(width=8, outputs=1, features=["cosine"]) for _ in range(50)]
    weights = torch.stack([head.mlp.layers[0].weight.detach() for head in heads])
    assert weights.std().item() > 0.3


@pytest.mark.parametrize("kind", ON_VECTORS)
def test_dropout_acts_while_training_only(kind: str) -> None:
    torch.manual_seed(0)
    options = {"features": {"features": ["u", "v"]}, "cosine": {"projection": True}}.get(kind, {})
    head = implementation(kind)(width=64, outputs=1, dropout=0.5, **options)
    u = torch.randn(3, 64)
    vectors = (u,) if kind == "mlp" else (u, u + 1)
    assert not torch.equal(head(*vectors), head(*vectors))
    head.eval()
    assert torch.equal(head(*vectors), head(*vectors))


def test_dropout_stands_before_each_linear_layer() -> None:
    head = MlpHead(width=WIDTH, outputs=2, hidden=[5], dropout=1.0)
    nn.init.ones_(head.layers[1].bias)
    u, _ = pair()
    assert torch.equal(head(u), torch.ones(4, 2))


@pytest.mark.parametrize("kind", ON_VECTORS)
def test_heads_run_under_bf16(kind: str) -> None:
    options = {"features": {"features": ["u", "cosine"]}, "cosine": {"projection": True}}
    head = implementation(kind)(width=WIDTH, outputs=1, dropout=0.0, **options.get(kind, {}))
    vectors = pair()[:1] if kind == "mlp" else pair()
    exact = head(*vectors)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = head(*vectors)
    torch.testing.assert_close(mixed.float(), exact, rtol=0.05, atol=0.02)
    halved = head.bfloat16()(*(vector.bfloat16() for vector in vectors))
    torch.testing.assert_close(halved.float(), exact, rtol=0.05, atol=0.02)


def test_cosines_agree_with_torch() -> None:
    u, v = pair()
    torch.testing.assert_close(unit(u), F.normalize(u))
    torch.testing.assert_close(cosine(u, v), F.cosine_similarity(u, v))
    matrix = F.cosine_similarity(u[:, None], v[None, :2], dim=-1)
    torch.testing.assert_close(cosine_matrix(u, v[:2]), matrix)


def test_cosine_gradients_agree_with_torch() -> None:
    for ours, theirs in ((cosine, F.cosine_similarity), (cosine_matrix, None)):
        u, v = pair()
        expected = (theirs or (lambda a, b: F.normalize(a) @ F.normalize(b).T))(u, v)
        wanted = torch.autograd.grad(expected.square().sum(), (u, v))
        found = torch.autograd.grad(ours(u, v).square().sum(), (u, v))
        torch.testing.assert_close(found, wanted)


def test_a_zero_vector_has_cosine_zero_and_no_gradient() -> None:
    u, v = torch.zeros(2, WIDTH, requires_grad=True), torch.ones(2, WIDTH, requires_grad=True)
    for function in (cosine, cosine_matrix):
        found = function(u, v)
        assert not found.any()
        for gradient in torch.autograd.grad(found.sum(), (u, v)):
            assert not gradient.any()


def test_cosine_matrix_stays_exact_under_autocast() -> None:
    u, v = pair()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = cosine_matrix(u, v)
    assert mixed.dtype == torch.float32
    assert torch.equal(mixed, cosine_matrix(u, v))


@pytest.mark.parametrize("difference", [False, True])
@pytest.mark.parametrize("activation", [None, "tanh"])
def test_a_dense_pair_head_is_put_together_by_hand(
    difference: bool, activation: str | None
) -> None:
    head = DensePairHead(
        width=WIDTH, outputs=1, difference=difference, activation=activation, dropout=0.0
    )
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    ab, ba = pair()
    read = [ab, ba, ab - ba] if difference else [ab, ba]
    given = torch.cat([layer(part) for layer, part in zip(head.branches, read, strict=True)], 1)
    given = torch.tanh(given) if activation else given
    torch.testing.assert_close(head(ab, ba), given @ head.final.weight.T + head.final.bias)


def test_without_weights_on_the_orders_only_their_difference_counts() -> None:
    head = DensePairHead(width=WIDTH, outputs=1, dropout=0.0)
    for layer in (*head.branches, head.final):
        nn.init.ones_(layer.weight)
        nn.init.zeros_(layer.bias)
    ab, ba = pair()
    expected = (ab + ba + (ab - ba)).sum(dim=1, keepdim=True)
    torch.testing.assert_close(head(ab, ba), expected)


def test_shared_layers_stand_first_in_every_head() -> None:
    for kind, reads in (("mlp", WIDTH), ("features", 2 * WIDTH), ("dense-pair", WIDTH)):
        options = {"features": ["u", "v"]} if kind == "features" else {}
        shared = SharedLayers(width=reads, hidden=[5, 3], activation="tanh", dropout=0.0)
        for parameter in shared.parameters():
            nn.init.normal_(parameter)
        head = implementation(kind)(width=WIDTH, outputs=2, dropout=0.0, shared=3, **options)
        alone = implementation(kind)(width=3, outputs=2, dropout=0.0, **options)
        u, v = pair()

        def through(vectors: torch.Tensor, shared: SharedLayers = shared) -> torch.Tensor:
            hidden = torch.tanh(shared.layers[0](vectors))
            return torch.tanh(shared.layers[1](hidden))

        if kind == "mlp":
            alone.load_state_dict(head.state_dict())
            expected, found = alone(through(u)), head(u, shared)
        elif kind == "dense-pair":
            alone.load_state_dict(head.state_dict())
            expected, found = alone(through(u), through(v)), head(u, v, shared)
        else:
            expected, found = head.mlp(through(torch.cat([u, v], 1))), head(u, v, shared)
        torch.testing.assert_close(found, expected)


def test_shared_layers_drop_before_each_linear_layer() -> None:
    shared = SharedLayers(width=WIDTH, hidden=[4], activation="relu", dropout=1.0)
    nn.init.ones_(shared.layers[0].bias)
    u, _ = pair()
    assert torch.equal(shared(u), torch.ones(4, 4))
    assert not torch.equal(shared.eval()(u), torch.ones(4, 4))


@pytest.mark.parametrize("factor", [1e-3, 1.0, 50.0])
def test_normalised_heads_see_only_directions(factor: float) -> None:
    u, v = pair()
    single = MlpHead(width=WIDTH, outputs=3, normalise=True).eval()
    both = FeatureHead(
        width=WIDTH, outputs=2, features=list(FEATURES), dropout=0.0, normalise=True
    ).eval()
    lengths = factor * torch.arange(1.0, 5.0)[:, None]
    torch.testing.assert_close(single(u * lengths), single(u), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both(u * lengths, v / lengths), both(u, v), rtol=1e-4, atol=1e-5)
    plain = MlpHead(width=WIDTH, outputs=3).eval()
    plain.load_state_dict(single.state_dict())
    torch.testing.assert_close(single(u), plain(F.normalize(u, dim=1)))
    torch.testing.assert_close(single.last(single.inputs(u)), single(u))
    torch.testing.assert_close(both.last(both.inputs(u, v)), both(u, v))
    assert sum(both.blocks) == both.last.in_features
