from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import OptimiserSpec, StageSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.parts import (
    build_optimiser,
    choose_trainable,
    rate,
    scheduled_step,
    set_modes,
)

HEAD = {"kind": "mlp", "hidden": [8]}
CLASSES = {
    "data": {"layout": "cs224n-sst"},
    "labels": ["bad", "good"],
    "single": {"head": HEAD, "objective": {"kind": "cross-entropy"}},
}
TASKS = {"sentiment": CLASSES, "sentiment-2": CLASSES}
EMBEDDINGS, FIRST, SECOND = "encoder.embeddings.", "encoder.layers.0.", "encoder.layers.1."
POOLER, HEAD_1, HEAD_2 = "encoder.pooler.", "heads.sentiment.", "heads.sentiment-2."


def stage(**keys: Any) -> StageSpec:
    return StageSpec(steps=1, **keys)


def moved_by_a_step(network: Network, tokenizer: Tokenizer) -> set[str]:
    """Names of the parameters that one real step on both tasks changes."""
    before = {name: value.clone() for name, value in network.state_dict().items()}
    optimiser = build_optimiser(network, OptimiserSpec(lr=0.01, weight_decay=0.1))
    tokens = tokenizer.encode(["a fine film", "how dull it is", "so-so"], max_tokens=32)
    batch = DeviceTokens.from_host(tokens, torch.device("cpu"))
    for task in TASKS:
        raw = network.outputs(task, "single", batch)
        labels = torch.from_numpy(np.array([1, 0, 1]))
        torch.autograd.backward(network.objectives[task, "single"].loss(raw, labels, total=3))
    optimiser.step()
    return {name for name, value in network.state_dict().items() if not value.equal(before[name])}


def named(network: Network, prefixes: Iterable[str]) -> set[str]:
    return {name for name, _ in network.named_parameters() if name.startswith(tuple(prefixes))}


@pytest.mark.parametrize(
    ("freeze", "trains"),
    [
        ([], [EMBEDDINGS, FIRST, SECOND, POOLER, HEAD_1, HEAD_2]),
        (["embeddings"], [FIRST, SECOND, POOLER, HEAD_1, HEAD_2]),
        (["layers.0"], [EMBEDDINGS, SECOND, POOLER, HEAD_1, HEAD_2]),
        (["layers.1"], [EMBEDDINGS, FIRST, POOLER, HEAD_1, HEAD_2]),
        (["layers.0-1"], [EMBEDDINGS, POOLER, HEAD_1, HEAD_2]),
        (["embeddings", "layers.0-0"], [SECOND, POOLER, HEAD_1, HEAD_2]),
        (["pooler"], [EMBEDDINGS, FIRST, SECOND, HEAD_1, HEAD_2]),
        (["encoder"], [HEAD_1, HEAD_2]),
        (["heads.sentiment"], [EMBEDDINGS, FIRST, SECOND, POOLER, HEAD_2]),
        (["heads.sentiment-2", "layers.0-1"], [EMBEDDINGS, POOLER, HEAD_1]),
    ],
    ids=str,
)
def test_frozen_parts_stay_and_all_others_move(
    make_network: Callable[..., Network], tokenizer: Tokenizer, freeze: list[str], trains: list[str]
) -> None:
    network = make_network(TASKS, pooling="pooler")
    choose_trainable(network, stage(freeze=freeze), tasks=list(TASKS))
    set_modes(network)
    assert moved_by_a_step(network, tokenizer) == named(network, trains)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_a_pooler_that_is_not_used_does_not_train(
    make_network: Callable[..., Network], tokenizer: Tokenizer, pooling: str
) -> None:
    network = make_network(TASKS, pooling=pooling)
    choose_trainable(network, stage(), tasks=list(TASKS))
    assert not named(network, [POOLER]) & moved_by_a_step(network, tokenizer)
    assert not any(parameter.requires_grad for parameter in network.encoder.pooler.parameters())


def test_heads_of_other_stages_do_not_train(make_network: Callable[..., Network]) -> None:
    network = make_network(TASKS)
    choose_trainable(network, stage(), tasks=["sentiment"])
    trains = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert trains == named(network, [EMBEDDINGS, FIRST, SECOND, HEAD_1])


def test_a_later_stage_thaws_what_an_earlier_one_froze(
    make_network: Callable[..., Network],
) -> None:
    network = make_network(TASKS)
    choose_trainable(network, stage(freeze=["encoder"]), tasks=["sentiment"])
    set_modes(network)
    choose_trainable(network, stage(), tasks=list(TASKS))
    set_modes(network)
    trains = {name for name, parameter in network.named_parameters() if parameter.requires_grad}
    assert trains == named(network, [EMBEDDINGS, FIRST, SECOND, HEAD_1, HEAD_2])
    assert network.encoder.training


@pytest.mark.parametrize("part", ["layers.2", "layers.0-2", "layers.99"])
def test_a_layer_that_is_not_there_is_named(
    make_network: Callable[..., Network], part: str
) -> None:
    with pytest.raises(TercetError, match=f"freeze '{part}': .* numbered from 0 to 1"):
        choose_trainable(make_network(TASKS), stage(freeze=[part]), tasks=list(TASKS))


def test_a_task_with_nothing_to_train_is_an_error_that_names_it(
    make_network: Callable[..., Network],
) -> None:
    frozen = stage(name="second", freeze=["encoder", "heads.sentiment-2"])
    with pytest.raises(TercetError, match=r"stage `second` .* that task `sentiment-2` could train"):
        choose_trainable(make_network(TASKS), frozen, tasks=list(TASKS))


def test_so_is_a_head_without_parameters_on_a_frozen_encoder(
    make_network: Callable[..., Network],
) -> None:
    cosine = {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}}
    similarity = {"data": {"layout": "cs224n-sts"}, "range": [0, 5], "bi": cosine}
    network = make_network({**TASKS, "similarity": similarity})
    choose_trainable(network, stage(freeze=["encoder"]), tasks=["sentiment"])
    with pytest.raises(TercetError, match="that task `similarity` could train"):
        choose_trainable(network, stage(freeze=["encoder"]), tasks=["sentiment", "similarity"])


def test_a_wholly_frozen_encoder_gives_the_same_vectors_each_time(
    make_network: Callable[..., Network], tokenizer: Tokenizer
) -> None:
    network = make_network(TASKS, dropout=0.5)
    tokens = tokenizer.encode(["a fine film", "how dull it is"], max_tokens=32)
    batch = DeviceTokens.from_host(tokens, torch.device("cpu"))
    choose_trainable(network, stage(freeze=["encoder"]), tasks=list(TASKS))
    set_modes(network)
    assert network.vectors(batch).equal(network.vectors(batch))
    assert network.heads.training
    choose_trainable(network, stage(freeze=["embeddings", "layers.0"]), tasks=list(TASKS))
    set_modes(network)
    assert not network.vectors(batch).equal(network.vectors(batch))


def rates(steps: int, **keys: Any) -> list[float]:
    spec = OptimiserSpec(**keys)
    return [rate(spec, step=step, steps=steps) for step in range(steps)]


def test_warm_up_rises_in_equal_steps_to_the_peak() -> None:
    found = rates(20, warmup=0.2, decay="constant")
    assert found[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert found[4:] == [1.0] * 16


def test_linear_falls_in_equal_steps_towards_zero() -> None:
    found = rates(12, warmup=1 / 6, decay="linear")
    assert found == pytest.approx([0.5, 1.0, *(1 - step / 10 for step in range(10))])


def test_cosine_falls_along_half_a_wave() -> None:
    found = rates(8, warmup=0.0, decay="cosine")
    assert found == pytest.approx([(1 + math.cos(math.pi * step / 8)) / 2 for step in range(8)])
    assert found[4] == pytest.approx(0.5)


@settings(deadline=None)
@given(
    st.integers(1, 300),
    st.floats(0.0, 0.99),
    st.sampled_from(["constant", "linear", "cosine"]),
)
def test_rates_rise_then_never_rise_again_and_stay_above_zero(
    steps: int, warmup: float, decay: str
) -> None:
    found = rates(steps, warmup=warmup, decay=decay)
    assert all(0.0 < factor <= 1.0 for factor in found)
    assert max(found) == 1.0
    peak = found.index(1.0)
    assert found[: peak + 1] == sorted(found[: peak + 1])
    assert found[peak:] == sorted(found[peak:], reverse=True)


def shortened_rates(spec: OptimiserSpec, *cuts: tuple[int, int], steps: int) -> list[float]:
    places = [scheduled_step(n, steps=steps, shortened=cuts) for n in range(cuts[-1][1])]
    return [rate(spec, step=place, steps=steps) for place in places]


def test_a_shortened_stage_compresses_the_rest_of_its_rates() -> None:
    spec = OptimiserSpec(lr=1.0, warmup=0.1)
    whole = rates(100, warmup=0.1, decay="linear")
    found = shortened_rates(spec, (40, 70), steps=100)
    assert found[:41] == whole[:41]
    assert np.diff(found[40:]) == pytest.approx(2.0 * np.diff(whole)[40])
    again = shortened_rates(spec, (40, 70), (60, 65), steps=100)
    assert again[:61] == found[:61]
    assert np.diff(again[60:]) == pytest.approx(2.0 * np.diff(found)[60])
    # In the first steps, the rise is compressed too.
    early = shortened_rates(spec, (5, 24), steps=100)
    assert early[:6] == whole[:6]
    assert early[5:] == pytest.approx(whole[5::5])
    assert all(scheduled_step(n, steps=9, shortened=None) == n for n in range(9))


def test_a_task_with_exemplars_needs_a_frozen_encoder(make_network: Callable[..., Network]) -> None:
    mode = {"head": {"kind": "nearest", "count": 3}, "objective": {"kind": "cross-entropy"}}
    network = make_network({"near": CLASSES | {"single": mode}})
    with pytest.raises(TercetError, match="put `encoder` into `freeze`"):
        choose_trainable(network, stage(), tasks=["near"])
    choose_trainable(network, stage(freeze=["encoder"]), tasks=["near"])
