"""Ragged batches behave like the lists of lists that they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.text.tokens import Pieces, Tokens, offsets_of, spans

Texts = list[list[int]]

texts = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=6)
limits = st.integers(1, 5)


def check(pieces: Pieces, expected: Texts, *, limit: int) -> None:
    """The pieces are those of the texts, cut to the limit."""
    assert len(pieces) == len(expected)
    assert (pieces.ids.dtype, pieces.offsets.dtype) == (np.int32, np.int64)
    bounds = zip(pieces.offsets[:-1], pieces.offsets[1:], strict=True)
    cut = [text[:limit] for text in expected]
    assert [pieces.ids[start:end].tolist() for start, end in bounds] == cut
    assert len(pieces.ids) == pieces.offsets[-1] == sum(map(len, cut))
    assert pieces.lengths.tolist() == list(map(len, expected))
    assert pieces.held.tolist() == list(map(len, cut))


@given(texts, limits)
def test_of_ids(rows: Texts, limit: int) -> None:
    check(Pieces.of_ids(iter(rows), limit=limit), rows, limit=limit)


@given(st.lists(texts, max_size=4), limits)
def test_concat(parts: list[Texts], limit: int) -> None:
    joined = Pieces.concat([Pieces.of_ids(part, limit=limit) for part in parts])
    check(joined, [text for part in parts for text in part], limit=limit)


@given(texts, limits, st.data())
def test_take_first_and_repeat(rows: Texts, limit: int, data: st.DataObject) -> None:
    pieces = Pieces.of_ids(rows, limit=limit)
    places = st.lists(st.integers(0, len(rows) - 1), max_size=8) if rows else st.just([])
    chosen = data.draw(places)
    taken = pieces.take(np.array(chosen, np.int64))
    check(taken, [rows[place] for place in chosen], limit=limit)
    count = data.draw(st.integers(0, len(rows)))
    check(pieces.first(count), rows[:count], limit=limit)
    times = data.draw(st.integers(0, 3))
    check(pieces.repeat(times), rows * times, limit=limit)


@given(texts, limits)
def test_distinct(rows: Texts, limit: int) -> None:
    pieces = Pieces.of_ids(rows, limit=limit)
    cut = [tuple(text[:limit]) for text in rows]
    first_rows, places = pieces.distinct()
    assert [cut[row] for row in first_rows] == list(dict.fromkeys(cut))
    assert [cut[first_rows[place]] for place in places] == cut
    assert first_rows.tolist() == [cut.index(text) for text in dict.fromkeys(cut)]
    keys = list(pieces.keys())
    assert len(set(keys)) == len(first_rows)


def many_texts() -> list[list[int]]:
    draw = np.random.default_rng(0)
    some = [draw.integers(0, 3, length).tolist() for length in draw.integers(0, 4, 60)]
    return [[], *some, [0, 0], [0], [1, 0], [0, 1], []]


@pytest.mark.parametrize("collide", [False, True])
def test_distinct_among_many(monkeypatch: pytest.MonkeyPatch, collide: bool) -> None:
    if collide:
        hashes = np.zeros(len(many_texts()), np.uint64)
        monkeypatch.setattr(Pieces, "_hashes", lambda pieces: hashes)
    rows = [tuple(row) for row in many_texts()]
    first_rows, places = Pieces.of_ids(rows, limit=9).distinct()
    assert [rows[row] for row in first_rows] == list(dict.fromkeys(rows))
    assert first_rows.tolist() == [rows.index(text) for text in dict.fromkeys(rows)]
    assert [rows[first_rows[place]] for place in places] == rows


def test_many_texts_that_all_differ_keep_their_places() -> None:
    pieces = Pieces.of_ids([[number] for number in range(100)], limit=1)
    assert [found.tolist() for found in pieces.distinct()] == [list(range(100))] * 2


def test_texts_whose_sentences_end_elsewhere_differ() -> None:
    pieces = Pieces.of_ids([[7, 8]] * 40, limit=2)
    ends = np.zeros(80, np.bool_)
    ends[[0, 78]] = True  # after the first piece, of the first and of the last text
    first_rows, places = replace(pieces, ends=ends).distinct()
    assert first_rows.tolist() == [0, 1]
    assert places.tolist() == [0, *[1] * 38, 0]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5), limits)
def test_of_flat(rows: Texts, limit: int) -> None:
    ids = np.array([id_ for row in rows for id_ in row], np.int32)
    lengths = np.array([len(row) for row in rows], np.int64)
    check(Pieces.of_flat(ids, lengths, limit=limit), rows, limit=limit)
    check(Pieces.of_flat(ids, lengths, limit=None), rows, limit=9)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4)), max_size=6))
def test_spans(pairs: list[tuple[int, int]]) -> None:
    starts, lengths = np.array(pairs, np.int64).reshape(-1, 2).T
    expected = [start + step for start, length in pairs for step in range(length)]
    assert spans(starts, lengths).tolist() == expected
    assert offsets_of(lengths)[-1] == len(expected)


rows_of_tokens = st.lists(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), max_size=4),
    min_size=1,
    max_size=4,
)


@given(rows_of_tokens)
def test_concat_of_tokens(batches: list[Texts]) -> None:
    def make(rows: Texts) -> Tokens:
        lengths = np.array(list(map(len, rows)), np.int64)
        ids = np.array([id_ for row in rows for id_ in row], np.int32)
        return Tokens(
            ids=ids,
            types=ids % 2,
            offsets=offsets_of(lengths),
            longest=int(lengths.max(initial=0)),
            truncated=len(rows) // 2,
        )

    joined = Tokens.concat(list(map(make, batches)))
    whole = make([row for rows in batches for row in rows])
    for name in ("ids", "types", "offsets", "lengths"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    assert joined.longest == whole.longest
    assert joined.truncated == sum(len(rows) // 2 for rows in batches)
