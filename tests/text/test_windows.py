"""Texts longer than an encoder reads: every piece is in a window, cut where sentences end."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.errors import TercetError
from tercet.text import tokenizer as tokenizer_module
from tercet.text.long_inputs import LongInputs
from tercet.text.sentences import slices
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Pieces
from tercet.text.windows import Windows, cut_text, windows_of

SENTENCE = "the film is good and the plot is long ."


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Tokenizer:
    return Tokenizer.load(tiny_encoder)


@given(
    ends=st.lists(st.booleans(), max_size=300),
    room=st.integers(1, 40),
)
def test_windows_cover_a_text_and_fit(ends: list[bool], room: int) -> None:
    cuts = cut_text(np.array(ends, np.bool_), room=room)
    assert cuts[0, 0] == 0
    assert cuts[-1, 1] == len(ends)
    assert (cuts[:, 1] - cuts[:, 0] <= room).all()
    # Nothing is left out, each window reads on, and no more than a quarter is read again.
    repeated = cuts[:-1, 1] - cuts[1:, 0]
    assert (repeated >= 0).all()
    assert (repeated <= room // 4).all()
    assert (np.diff(cuts[:, 0]) > 0).all()
    for start, end in cuts[:-1].tolist():
        # Where no sentence ends in the second half of a window, it is full.
        assert ends[end - 1] or (end == start + room and not any(ends[start + room // 2 : end]))


def test_windows_begin_and_end_with_sentences() -> None:
    ends = np.zeros(100, np.bool_)
    ends[9::10] = True
    assert cut_text(ends, room=45).tolist() == [[0, 40], [30, 70], [60, 100]]


def test_one_endless_sentence_is_cut_anywhere_with_overlap() -> None:
    assert cut_text(np.zeros(100, np.bool_), room=40).tolist() == [[0, 40], [30, 70], [60, 100]]


def test_a_long_last_sentence_is_not_begun_in_its_middle() -> None:
    ends = np.zeros(60, np.bool_)
    ends[35] = True
    assert cut_text(ends, room=40).tolist() == [[0, 36], [36, 60]]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("the film . the plot", ["the film .", "the plot"]),
        ('good film." long plot', ['good film."', "long plot"]),
        ("the film\nthe plot", ["the film", "the plot"]),
        ("the film <br /> the plot", ["the film <br />", "the plot"]),
        ("3.5 films of 4.0", ["3.5 films of 4.0"]),
    ],
)
def test_sentence_ends_are_found_in_the_text(
    tokenizer: Tokenizer, text: str, sentences: list[str]
) -> None:
    pieces = tokenizer.whole_pieces([text], limit=3)
    assert pieces.ends is not None
    lengths = [len(tokenizer.pieces([part], limit=99).ids) for part in sentences]
    assert (np.flatnonzero(pieces.ends) + 1).tolist() == np.cumsum(lengths)[:-1].tolist()


def test_whole_pieces_are_those_of_short_texts_too(tokenizer: Tokenizer) -> None:
    texts = ["a film", "", f"{SENTENCE} " * 40, "good \ud83d\ude00 fun " * 30, "film" * 500]
    whole, cut = tokenizer.whole_pieces(texts, limit=20), tokenizer.pieces(texts, limit=10_000)
    assert (whole.ids == cut.ids).all()
    assert (whole.lengths == whole.held).all()
    assert whole.ends is not None
    assert whole.ends.sum() == 40


def test_parts_of_a_long_text_have_the_pieces_of_the_whole(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{SENTENCE} " * 50
    whole = tokenizer.whole_pieces([text], limit=20)
    monkeypatch.setattr(tokenizer_module, "PART_CHARACTERS", 100)
    monkeypatch.setattr(tokenizer_module, "STEP_CHARACTERS", 200)
    parts = tokenizer.whole_pieces(["a film", text], limit=20)
    assert (parts.ids[parts.offsets[1] :] == whole.ids).all()
    assert parts.ends is not None
    assert whole.ends is not None
    assert (parts.ends[parts.offsets[1] :] == whole.ends).mean() > 0.95


@given(text=st.text("ab \n", max_size=60), size=st.integers(1, 20), more=st.integers(0, 20))
def test_slices_join_to_the_text(text: str, size: int, more: int) -> None:
    parts = list(slices(text, size=size, most=size + more))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= size + more
    assert all(len(part) >= size for part in parts[:-1])
    for part, rest in pairwise(parts):  # cut after a word, but for one that is too long
        assert len(part) == size + more or (not part[-1].isspace() and rest[0].isspace())


def test_texts_are_windows_by_themselves_or_in_several(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.whole_pieces(["a film", f"{SENTENCE} " * 8, ""], limit=32)
    windows = windows_of([pieces], template=tokenizer.template, max_tokens=32)
    assert windows is not None
    assert windows.owners.tolist() == [0, 1, 1, 1, 1, 2]
    assert (windows.columns[0].held[1:-1] <= 30).all()
    assert (windows.weights == windows.columns[0].held).all()
    again = windows_of([pieces], np.array([2, 1]), template=tokenizer.template, max_tokens=32)
    assert again is not None
    assert again.owners.tolist() == [0, 1, 1, 1, 1]
    assert windows_of([pieces.first(1)], template=tokenizer.template, max_tokens=32) is None
    cut = tokenizer.pieces([f"{SENTENCE} " * 8], limit=32)
    assert windows_of([cut], template=tokenizer.template, max_tokens=32) is None


def test_the_shorter_side_of_a_pair_is_in_every_window(tokenizer: Tokenizer) -> None:
    short, long = ["a film"], [f"{SENTENCE} " * 8]
    sides = [tokenizer.whole_pieces(texts, limit=32) for texts in (short, long)]
    for first, second in ((0, 1), (1, 0)):
        windows = windows_of(
            [sides[first], sides[second]], template=tokenizer.template, max_tokens=32
        )
        assert windows is not None
        repeated, cut = windows.columns[first], windows.columns[second]
        assert (repeated.held == sides[0].held[0]).all()
        assert ((repeated.held + cut.held) <= 29).all()
        assert (windows.weights == cut.held).all()


def test_two_long_sides_are_read_side_by_side(tokenizer: Tokenizer) -> None:
    sides = [tokenizer.whole_pieces([f"{SENTENCE} " * count], limit=32) for count in (6, 12)]
    windows = windows_of(sides, template=tokenizer.template, max_tokens=32)
    assert windows is not None
    first, second = windows.columns
    assert ((first.held + second.held) <= 29).all()
    ends = [set(column.ids[-3:].tolist()) for column in sides]
    for column, ending in zip((first, second), ends, strict=True):
        start, end = column.offsets[-2:]
        assert set(column.ids[start:end][-3:].tolist()) == ending  # up to the last of both


def test_a_window_of_a_pair_has_room_for_both_texts(tokenizer: Tokenizer) -> None:
    sides = [tokenizer.whole_pieces([text], limit=5) for text in ("a film", "a day")]
    windows = windows_of(sides, template=tokenizer.template, max_tokens=5)
    assert windows is not None
    assert [column.held.tolist() for column in windows.columns] == [[1, 1], [1, 1]]
    with pytest.raises(TercetError, match="max_tokens = 4 leaves no room for windows of both"):
        windows_of(sides, template=tokenizer.template, max_tokens=4)


def test_averages_are_weighted_by_pieces() -> None:
    none = np.zeros(0, np.int32)
    columns = (Pieces(none, np.zeros(4, np.int64), np.zeros(3, np.int64)),)
    windows = Windows(columns, np.array([0, 1, 1]), np.array([5, 30, 10]), 2)
    values = np.array([[0.1, 1.0], [1.0, 0.0], [5.0, 4.0]], np.float32)
    averages = windows.average(values)
    assert (averages[0] == values[0]).all()
    assert np.allclose(averages[1], [2.0, 1.0])


def test_long_inputs_are_counted(tokenizer: Tokenizer) -> None:
    texts = ["a film", f"{SENTENCE} " * 8]
    reading = {"template": tokenizer.template, "max_tokens": 42}
    cut = LongInputs.of([tokenizer.pieces(texts, limit=42)], joint=False, **reading)
    assert cut == LongInputs(inputs=2, long=1, tokens=106, lost=64)
    assert cut.sentence("texts", max_tokens=42) == (
        "1 of 2 texts was longer than 42 tokens and was truncated (60 % of its tokens dropped)."
    )
    whole = LongInputs.of([tokenizer.whole_pieces(texts, limit=42)], joint=False, **reading)
    both = whole + whole
    assert both == LongInputs(inputs=4, long=2, tokens=212)
    assert both.sentence("texts", max_tokens=42) == (
        "2 of 4 texts were longer than 42 tokens and were read in windows."
    )
    # Two sides that fit alone, and not together.
    sides = [tokenizer.pieces([f"{SENTENCE} " * 2], limit=42)] * 2
    assert LongInputs.of(sides, joint=True, **reading).long == 1
    assert LongInputs.of(sides, joint=False, **reading).sentence("pairs", max_tokens=42) is None


def test_memory_does_not_grow_with_the_offsets_of_a_long_text(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_module, "PART_CHARACTERS", 10_000)
    text = f"{SENTENCE} " * 10_000
    tracemalloc.start()
    pieces = tokenizer.whole_pieces([text], limit=512)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(pieces.ids) == 130_000
    # Four bytes per piece, copied twice, a mark, and the parts of the text.
    assert peak < 20 * len(pieces.ids)


@pytest.mark.parametrize(("lost", "share"), [(1, "1 %"), (300_000 - 512, "99 %")])
def test_a_part_that_was_dropped_is_neither_nothing_nor_all(lost: int, share: str) -> None:
    sentence = LongInputs(inputs=1, long=1, tokens=300_000, lost=lost).sentence(
        "texts", max_tokens=512
    )
    assert sentence == (
        f"1 of 1 text was longer than 512 tokens and was truncated ({share} of its tokens dropped)."
    )
