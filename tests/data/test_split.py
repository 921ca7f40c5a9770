"""Dev rows split off training rows: disjoint, stratified, and with no text on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tercet.data.split import choose_dev, fold_numbers, split_off
from tercet.errors import TercetError

WORDS = st.sampled_from(["Apple", "pear ", " PEAR", "plum", "fig", "sour  plum", "Sour plum"])
SHARES = st.sampled_from([0.1, 0.15, 0.3, 0.5])
SEEDS = st.integers(0, 5)


def fold(text: str) -> str:
    return " ".join(text.casefold().split())


def blocks_of(texts: Sequence[Sequence[str]], groups: Sequence[str | None] | None) -> list[int]:
    """The block of each row, by networkx."""
    graph = nx.Graph()
    for row, values in enumerate(zip(*texts, strict=True)):
        graph.add_node(row)
        graph.add_edges_from((row, ("text", fold(value))) for value in values)
        if groups is not None and groups[row] is not None:
            graph.add_edge(row, ("group", groups[row]))
    numbers = {}
    for number, component in enumerate(nx.connected_components(graph)):
        numbers |= {node: number for node in component if isinstance(node, int)}
    return [numbers[row] for row in range(len(texts[0]))]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[str]], list[str | None] | None]:
    """One or two columns in which texts recur, and groups or none."""
    rows = draw(st.integers(8, 60))
    fresh = st.integers(0, 10**6).map("sentence {}".format)
    column = st.lists(st.one_of(WORDS, fresh, fresh, fresh), min_size=rows, max_size=rows)
    group = st.lists(
        st.one_of(st.none(), st.none(), st.sampled_from("abcd")), min_size=rows, max_size=rows
    )
    columns = draw(st.lists(column, min_size=1, max_size=2))
    return columns, draw(st.none() | group)


def chosen(
    texts: Any, labels: Any, share: float, seed: int, groups: Any = None
) -> tuple[list[int], str]:
    try:
        dev = choose_dev(texts, labels, share=share, groups=groups, seed=seed)
    except TercetError:
        assume(False)
    return dev.rows.tolist(), dev.remark


@settings(max_examples=150, deadline=None)
@given(tables(), SHARES, SEEDS, st.data())
def test_a_split_is_disjoint_repeatable_and_keeps_blocks_together(
    table: tuple[list[list[str]], list[str | None] | None],
    share: float,
    seed: int,
    data: st.DataObject,
) -> None:
    texts, groups = table
    count = len(texts[0])
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    rows, remark = chosen(texts, labels, share, seed, groups)
    assert rows == sorted(set(rows))
    assert 0 < len(rows) < count
    again = split_off(texts, labels, share=share, groups=groups, seed=seed)
    assert rows == again.tolist()
    dev = set(rows)
    blocks = blocks_of(texts, groups)
    sides: dict[Any, set[bool]] = {}
    for row, block in enumerate(blocks):
        key = block if not remark else tuple(sorted(fold(column[row]) for column in texts))
        sides.setdefault(key, set()).add(row in dev)
        if groups is not None and groups[row] is not None:
            sides.setdefault(("group", groups[row]), set()).add(row in dev)
    assert all(len(both) == 1 for both in sides.values())
    target = max(1, round(share * count))
    largest = max(Counter(blocks).values())
    assert abs(len(rows) - target) <= max(3, target, largest)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=20, max_size=80),
    SHARES,
    SEEDS,
)
def test_every_class_with_two_blocks_is_on_both_sides(
    blocks: list[tuple[int, int]], share: float, seed: int
) -> None:
    """Each block is some rows of the same text and class."""
    texts = [f"text {number}" for number, (_, size) in enumerate(blocks) for _ in range(size)]
    labels = np.array([label for label, size in blocks for _ in range(size)])
    target = max(1, round(share * len(texts)))
    smallest = {label: min(size for at, size in blocks if at == label) for label, _ in blocks}
    assume(sum(smallest.values()) <= 2 * target)
    rows, _ = chosen([texts], labels, share, seed)
    dev = set(rows)
    for label, several in Counter(label for label, _ in blocks).items():
        sides = {row in dev for row in np.flatnonzero(labels == label).tolist()}
        assert sides == ({True, False} if several > 1 else {False})


def shares_of(labels: NDArray[Any], dev: NDArray[np.int64]) -> dict[Any, float]:
    return {
        key: float((labels[dev] == key).sum() / (labels == key).sum()) for key in np.unique(labels)
    }


def test_classes_have_the_same_share() -> None:
    draws = np.random.default_rng(1)
    labels = draws.choice(4, size=2000, p=[0.7, 0.2, 0.08, 0.02])
    texts = [f"text {row}" for row in range(2000)]
    dev = split_off([texts], labels, share=0.15)
    assert len(dev) == 300
    assert all(abs(share - 0.15) < 0.02 for share in shares_of(labels, dev).values())
    other = split_off([texts], labels, share=0.15, seed=1)
    assert not np.array_equal(dev, other)


def test_grades_have_the_same_share_in_every_quantile() -> None:
    grades = np.random.default_rng(1).normal(size=1000).astype(np.float32) ** 3
    texts = [f"text {row}" for row in range(1000)]
    dev = split_off([texts], grades, share=0.2)
    tenths = np.searchsorted(np.quantile(grades, np.linspace(0, 1, 11)[1:-1]), grades, "right")
    assert len(dev) == 200
    assert all(abs(share - 0.2) < 0.011 for share in shares_of(tenths, dev).values())


def test_rows_of_several_labels_are_split_by_their_rarest() -> None:
    draws = np.random.default_rng(1)
    labels = (draws.random((1000, 4)) < [0.5, 0.3, 0.1, 0.01]).astype(np.int64)
    texts = [f"text {row}" for row in range(1000)]
    dev = split_off([texts], labels, share=0.2)
    rare = labels[:, 3]
    assert rare.sum() > 4
    assert abs(rare[dev].sum() - 0.2 * rare.sum()) <= 0.5
    bare = ~labels.any(axis=1)
    assert abs(bare[dev].sum() - 0.2 * bare.sum()) <= 0.5


def test_pairs_that_share_a_text_stay_together() -> None:
    first = [f"question {row // 3}" for row in range(300)]
    second = [f"Question  {row // 3} again" if row % 3 else f"odd {row}" for row in range(300)]
    rows, remark = chosen([first, second], np.arange(300) % 2, 0.2, 0)
    assert not remark
    assert set(Counter(row // 3 for row in rows).values()) == {3}
    assert 57 <= len(rows) <= 60


def test_a_common_premise_leaves_only_equal_pairs_together() -> None:
    premises = ["A man sleeps."] * 200
    guesses = [f"He dreams of {row // 2}." for row in range(200)]
    swapped = [row % 4 == 1 for row in range(200)]
    first = [g if swap else p for p, g, swap in zip(premises, guesses, swapped, strict=True)]
    second = [p if swap else g for p, g, swap in zip(premises, guesses, swapped, strict=True)]
    rows, remark = chosen([first, second], np.arange(200) // 2 % 3, 0.15, 0)
    assert "only equal pairs" in remark
    assert set(Counter(row // 2 for row in rows).values()) == {2}
    assert len(rows) == 30


def test_few_large_groups_give_dev_the_nearest_size() -> None:
    texts = [f"text {row}" for row in range(100)]
    groups = [f"author {row // 20}" for row in range(100)]
    rows, _ = chosen([texts], np.arange(100) % 2, 0.15, 0, groups)
    assert len({row // 20 for row in rows}) == 1
    assert len(rows) == 20


@pytest.mark.parametrize(
    ("texts", "groups"),
    [(["same"] * 10, None), ([f"text {row}" for row in range(10)], ["one"] * 10)],
)
def test_what_cannot_be_split_is_told(texts: list[str], groups: list[str] | None) -> None:
    with pytest.raises(TercetError, match=r"`dev` = 0.2: no dev rows can be split off 10 rows"):
        split_off([texts], None, share=0.2, groups=groups)


@settings(max_examples=150, deadline=None)
@given(tables(), st.integers(2, 5), SEEDS, st.data())
def test_folds_are_repeatable_and_keep_blocks_together(
    table: tuple[list[list[str]], list[str | None] | None],
    folds: int,
    seed: int,
    data: st.DataObject,
) -> None:
    texts, groups = table
    count = len(texts[0])
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    numbers = fold_numbers(texts, labels, folds=folds, groups=groups, seed=seed)
    assert numbers.shape == (count,)
    assert numbers.dtype == np.int64
    assert set(numbers.tolist()) <= set(range(folds))
    again = fold_numbers(texts, labels, folds=folds, groups=groups, seed=seed)
    assert np.array_equal(numbers, again)
    together: dict[Any, set[int]] = {}
    for row, number in enumerate(numbers.tolist()):
        # Equal rows and groups are never split up, however large their blocks are.
        same = tuple(sorted(fold(column[row]) for column in texts))
        together.setdefault(same, set()).add(number)
        if groups is not None and groups[row] is not None:
            together.setdefault(("group", groups[row]), set()).add(number)
    blocks = blocks_of(texts, groups)
    if max(Counter(blocks).values()) <= count // folds:
        for row, number in enumerate(numbers.tolist()):
            together.setdefault(("block", blocks[row]), set()).add(number)
    assert all(len(found) == 1 for found in together.values())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=10, max_size=90), st.integers(2, 5), SEEDS)
def test_folds_have_the_same_rows_of_every_class(classes: list[int], folds: int, seed: int) -> None:
    texts = [f"text {row}" for row in range(len(classes))]
    numbers = fold_numbers([texts], np.array(classes), folds=folds, seed=seed)
    for label in set(classes):
        rows = np.bincount(numbers[np.array(classes) == label], minlength=folds)
        assert rows.max() - rows.min() <= 1
    sizes = np.bincount(numbers, minlength=folds)
    assert sizes.max() - sizes.min() <= len(set(classes))


def test_folds_of_grades_and_of_several_labels() -> None:
    draws = np.random.default_rng(1)
    texts = [f"text {row}" for row in range(600)]
    grades = draws.normal(size=600).astype(np.float32) ** 3
    numbers = fold_numbers([texts], grades, folds=3)
    assert np.bincount(numbers).tolist() == [200, 200, 200]
    means = [np.median(grades[numbers == fold]) for fold in range(3)]
    assert np.ptp(means) < 0.1
    labels = (draws.random((600, 3)) < [0.5, 0.2, 0.02]).astype(np.int64)
    numbers = fold_numbers([texts], labels, folds=3)
    rare = [int(labels[numbers == fold, 2].sum()) for fold in range(3)]
    assert max(rare) - min(rare) <= 1
    assert not np.array_equal(numbers, fold_numbers([texts], labels, folds=3, seed=5))


def test_folds_under_a_common_premise_keep_equal_pairs_together() -> None:
    first = ["A man sleeps."] * 60
    second = [f"He dreams of {row // 2}." for row in range(60)]
    numbers = fold_numbers([first, second], np.arange(60) // 2 % 3, folds=3)
    assert np.bincount(numbers).tolist() == [20, 20, 20]
    assert np.array_equal(numbers[::2], numbers[1::2])
