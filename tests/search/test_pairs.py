from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.progress import silent
from tercet.search import pairs
from tercet.search.groups import group_rows
from tercet.search.pairs import blocks_of, closest_pairs, pairs_above

Pair = tuple[int, int, float]


def unit_vectors(count: int, seed: int, *, copies: int = 0) -> np.ndarray:
    """Random directions; the last ones repeat some of the first."""
    generator = np.random.default_rng(seed)
    vectors = generator.standard_normal((count, 12)).astype(np.float32)
    vectors[count - copies :] = vectors[generator.integers(max(count - copies, 1), size=copies)]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def brute_force(vectors: np.ndarray) -> list[Pair]:
    """All pairs, the best first, earlier ones first where scores are alike."""
    found = []
    for first in range(len(vectors)):
        one = np.broadcast_to(vectors[first].astype(np.float64), vectors[first + 1 :].shape)
        scores = np.einsum("nd,nd->n", one, vectors[first + 1 :]).astype(np.float32)
        found += [(first, first + 1 + n, float(score)) for n, score in enumerate(scores)]
    return sorted(found, key=lambda pair: (-pair[2], pair[0], pair[1]))


def as_list(records: np.ndarray) -> list[Pair]:
    return [tuple(record) for record in records.tolist()]


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 30), st.integers(1, 400), st.integers(1, 9), st.data())
def test_closest_pairs_equal_brute_force(tmp_path_factory, count, copies, top, block, data) -> None:
    vectors = unit_vectors(count, seed=count, copies=min(copies, count - 1))
    cut = data.draw(st.integers(0, count))
    threshold = data.draw(st.sampled_from([None, 0.3, 1.0]))
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "BLOCK", block)
        patch.setattr(pairs, "PENDING", 50)
        found = closest_pairs(
            blocks_of([vectors[:cut], vectors[cut:]]), folder, top=top, threshold=threshold
        )
    wanted = [pair for pair in brute_force(vectors) if threshold is None or pair[2] >= threshold]
    assert as_list(found) == wanted[:top]


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 60), st.integers(0, 30), st.integers(1, 9), st.sampled_from([-1, 0.2, 0.9]))
def test_pairs_above_equal_brute_force(tmp_path_factory, count, copies, block, threshold) -> None:
    vectors = unit_vectors(count, seed=count, copies=min(copies, count - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "BLOCK", block)
        folder = tmp_path_factory.mktemp("work")
        found = pairs_above(blocks_of([vectors]), folder, threshold=threshold)
    assert as_list(found) == sorted(p for p in brute_force(vectors) if p[2] >= threshold)


@pytest.mark.parametrize("all_above", [False, True])
@pytest.mark.parametrize("stop", [0, 5, 17, 40, 77])
def test_interrupted_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int, all_above: bool
) -> None:
    monkeypatch.setattr(pairs, "BLOCK", 8)
    vectors = unit_vectors(100, seed=1, copies=20)
    blocks = blocks_of([vectors])
    calls = 0

    def stopping(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == stop + 1:
            raise KeyboardInterrupt

    def run(progress=silent) -> list[Pair]:
        if all_above:
            return as_list(pairs_above(blocks, tmp_path, threshold=0.2, progress=progress))
        return as_list(closest_pairs(blocks, tmp_path, top=70, progress=progress))

    with pytest.raises(KeyboardInterrupt):
        run(stopping)
    steps: list[int] = []
    found = run(lambda done, total: steps.append(total))
    total = 13 * 14 // 2
    assert steps[0] == total
    assert len(steps) <= total - stop + 13
    wanted = brute_force(vectors)
    assert found == (sorted(p for p in wanted if p[2] >= 0.2) if all_above else wanted[:70])


def test_work_of_another_question_is_not_gone_on_with(tmp_path: Path) -> None:
    vectors = unit_vectors(30, seed=2)
    blocks = blocks_of([vectors])
    closest_pairs(blocks, tmp_path, top=5)
    pairs_above(blocks, tmp_path, threshold=0.1)
    assert as_list(closest_pairs(blocks, tmp_path, top=9)) == brute_force(vectors)[:9]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))),
        )
    )
)
def test_groups_are_what_pairs_hold_together(given_pairs) -> None:
    count, batches = given_pairs
    sets = [{row} for row in range(count)]
    for first, second in [pair for batch in batches for pair in batch]:
        one = next(s for s in sets if first in s)
        other = next(s for s in sets if second in s)
        if one is not other:
            one |= other
            sets.remove(other)
    several = sorted(sorted(s) for s in sets if len(s) > 1)
    wanted = [0] * count
    for number, members in enumerate(several, start=1):
        for row in members:
            wanted[row] = number
    arrays = [np.array(batch, np.int64).reshape(-1, 2).T for batch in batches]
    assert group_rows(count, [(a[0], a[1]) for a in arrays]).tolist() == wanted
