from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tercet.infer.batches import batches, shares, token_counts
from tercet.text.tokenizer import Tokenizer

lengths_of_rows = st.lists(st.integers(1, 200), max_size=80).map(
    lambda values: np.array(values, np.int64)
)


@given(lengths=lengths_of_rows, budget=st.integers(1, 300))
def test_every_row_is_in_one_batch_that_keeps_the_budget(lengths, budget) -> None:
    found = batches(lengths, budget=budget)
    rows = np.concatenate([np.zeros(0, np.int64), *found])
    assert sorted(rows.tolist()) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or lengths[batch].sum() <= budget


@given(lengths=lengths_of_rows, budget=st.integers(1, 300))
def test_rows_go_from_long_to_short_and_no_batch_could_take_one_more(lengths, budget) -> None:
    found = batches(lengths, budget=budget)
    rows = np.concatenate([np.zeros(0, np.int64), *found])
    assert (np.diff(lengths[rows]) <= 0).all()
    for batch, after in itertools.pairwise(found):
        assert lengths[batch].sum() + lengths[after[0]] > budget


def test_a_row_beyond_the_budget_is_a_batch_of_its_own() -> None:
    found = batches(np.array([3, 900, 4], np.int64), budget=10)
    assert [batch.tolist() for batch in found] == [[1], [2, 0]]


def test_lengths_are_those_of_the_tokens(tiny_encoder: Path) -> None:
    tokenizer = Tokenizer.load(tiny_encoder)
    texts = ["a film", "", "one two three four five six seven eight nine ten eleven twelve", "b"]
    others = ["c", "d e f", "g", "one two three four five six seven eight nine ten eleven"]
    for limit in (8, 20, 64):
        first, second = (tokenizer.pieces(side, limit=limit) for side in (texts, others))
        template = tokenizer.template
        single = template.single(first, max_tokens=limit).lengths
        pair = template.pair(first, second, max_tokens=limit).lengths
        assert (token_counts([first], template=template, max_tokens=limit) == single).all()
        assert (token_counts([first, second], template=template, max_tokens=limit) == pair).all()


@given(
    lengths=st.lists(st.integers(2, 40), min_size=200, max_size=600),
    threads=st.integers(2, 4),
)
def test_threads_get_equally_many_batches_of_the_same_size(
    lengths: list[int], threads: int
) -> None:
    rows = np.array(lengths)
    found = shares(rows, least=128, most=768, threads=threads)
    assert sorted(np.concatenate(found)) == list(range(len(rows)))
    assert len(found) % threads == 0
    share = rows.sum() / len(found)
    assert share <= 768
    # Each end is at most half a row from where it should be.
    assert all(abs(rows[batch].sum() - share) <= rows.max() for batch in found)


@given(lengths=lengths_of_rows, threads=st.integers(1, 4))
def test_every_row_is_in_one_share(lengths, threads) -> None:
    found = shares(lengths, least=16, most=100, threads=threads)
    assert all(len(batch) for batch in found)
    assert sorted(row for batch in found for row in batch) == list(range(len(lengths)))


def test_few_tokens_are_not_divided_further() -> None:
    assert len(shares(np.array([10, 10]), least=128, most=768, threads=2)) == 1
    assert len(shares(np.full(10, 20), least=128, most=768, threads=4)) == 2


def test_one_thread_gets_full_batches() -> None:
    assert [len(rows) for rows in shares(np.full(10, 100), least=128, most=768, threads=1)] == [
        7,
        3,
    ]
