from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import TaskSpec
from tercet.text.tokenizer import Tokenizer
from tercet.training.distributed import World
from tercet.training.exemplars import choose, fill_exemplars
from tercet.training.losses import Losses

TEXTS = ["a fine film", "how dull it is", "so-so", "the cat sits", "rain falls", "no"]
LABELS = [1, 0, 1, 0, 2, 2]


@given(st.lists(st.integers(0, 3), min_size=4, max_size=60), st.integers(4, 40), st.integers(0, 9))
def test_exemplars_are_chosen_once_each_and_alike(labels: list[int], count: int, seed: int) -> None:
    known = np.array(labels)
    rows = choose(known, count, alike=True, seed=seed)
    sizes = np.bincount(known)
    each = count // len(set(labels))
    assert len(set(rows.tolist())) == len(rows)
    assert np.bincount(known[rows], minlength=len(sizes)).tolist() == [min(each, s) for s in sizes]
    everyone = choose(known, len(known), alike=False, seed=seed)
    assert everyone.tolist() == list(range(len(known)))
    assert choose(known, count, alike=True, seed=seed).tolist() == rows.tolist()


def test_there_is_an_exemplar_of_each_class() -> None:
    with pytest.raises(TercetError, match="`count` of exemplars is 2, but there are 3 classes"):
        choose(np.array(LABELS), 2, alike=True, seed=0)


def test_a_head_knows_its_exemplars_again(
    make_network: Callable[..., Network],
    make_table: Callable[..., TaskTable],
    tokenizer: Tokenizer,
) -> None:
    mode = {"head": {"kind": "nearest", "count": 8}, "objective": {"kind": "cross-entropy"}}
    block = {"data": {"layout": "cs224n-sst"}, "labels": ["a", "b", "c"], "single": mode}
    network = make_network({"t": block})
    losses = Losses(
        network=network,
        tasks={"t": TaskSpec.model_validate(block)},
        tables={"t": make_table(TEXTS, labels=LABELS)},
        template=tokenizer.template,
        max_tokens=24,
        world=World(rank=0, size=1, device=torch.device("cpu")),
    )
    fill_exemplars(losses, "t", seed=0)
    host = losses.batch("t", np.arange(6), total=6).tokens["single"]
    raw = network.eval().outputs("t", "single", DeviceTokens.from_host(host, torch.device("cpu")))
    assert raw.argmax(dim=1).tolist() == LABELS
