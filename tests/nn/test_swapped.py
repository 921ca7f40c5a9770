from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.nn.config import read_config
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.swapped import swapped
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Tokens, padded

CPU = torch.device("cpu")
TEXTS = st.sampled_from(
    ["", "no", "a fine film", "how do i learn the guitar?", "the cat sits here"]
)


@pytest.fixture(params=["tiny_encoder", "tiny_mpnet"])
def folder(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_swapped_pairs_are_pairs_encoded_the_other_way_round(
    folder: Path, pairs: list[tuple[str, str]], encode_pairs: Callable[..., Tokens]
) -> None:
    tokenizer, separators = Tokenizer.load(folder), read_config(folder).architecture.pair_separators
    tokens = DeviceTokens.from_host(encode_pairs(tokenizer, pairs, max_tokens=40), CPU)
    back = [(second, first) for first, second in pairs]
    expected = DeviceTokens.from_host(encode_pairs(tokenizer, back, max_tokens=40), CPU)
    result = swapped(tokens, separators=separators)
    assert result.ids.tolist() == expected.ids.tolist()
    assert result.types.tolist() == expected.types.tolist()
    assert torch.equal(swapped(result, separators=separators).ids, tokens.ids)


def test_rows_that_fill_a_shape_do_no_harm(
    folder: Path, encode_pairs: Callable[..., Tokens]
) -> None:
    tokenizer, separators = Tokenizer.load(folder), read_config(folder).architecture.pair_separators
    pairs = encode_pairs(tokenizer, [("a fine film", "no"), ("no", "a cat")], max_tokens=40)
    filled = padded(pairs, rows=6, total=len(pairs.ids) + 11, longest=8, filler=0)
    alone = swapped(DeviceTokens.from_host(pairs, CPU), separators=separators)
    result = swapped(DeviceTokens.from_host(filled, CPU), separators=separators)
    assert torch.equal(result.ids[: len(alone.ids)], alone.ids)
    assert torch.equal(result.types[: len(alone.ids)], alone.types)
