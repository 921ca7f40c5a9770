"""Laying pieces into rows, and the arithmetic of cutting a pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers

from tercet.errors import TercetError
from tercet.text.template import Template, longest_first
from tercet.text.tokenizer import Tokenizer
from tercet.text.tokens import Pieces, Tokens

LENGTHS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20)


def step_by_step(first: int, second: int, room: int) -> tuple[int, int]:
    """Take one piece at a time from the longer side; `room` decides between two equal ones."""
    longer_is_first = first > second
    while first + second > room:
        if first > second or (first == second and not longer_is_first):
            first -= 1
        else:
            second -= 1
    return first, second


@given(lengths=LENGTHS, room=st.integers(1, 40))
def test_longest_first_takes_from_the_longer_side(lengths, room):
    first, second = np.array(lengths, np.int64).T
    kept, other = longest_first(first, second, room=room)
    assert list(zip(kept.tolist(), other.tolist(), strict=True)) == [
        step_by_step(a, b, room) for a, b in lengths
    ]


def test_rows_choose_and_repeat(tiny_encoder, encode_pairs):
    tokenizer = Tokenizer.load(tiny_encoder)
    texts = ["a film", "the script is flawless", "", "Low Tide drags"]
    others = ["one", "two two", "", "four"]
    first, second = tokenizer.pieces(texts, limit=50), tokenizer.pieces(others, limit=50)
    rows = np.array([3, 0, 0, 2])
    single = tokenizer.template.single(first, rows, max_tokens=30)
    expected = tokenizer.encode([texts[row] for row in rows], max_tokens=30)
    assert single.ids.tolist() == expected.ids.tolist()
    assert single.offsets.tolist() == expected.offsets.tolist()
    pair = tokenizer.template.pair(first, second, rows, max_tokens=8)
    joined = encode_pairs(tokenizer, [(texts[row], others[row]) for row in rows], max_tokens=8)
    assert pair.ids.tolist() == joined.ids.tolist()
    assert pair.types.tolist() == joined.types.tolist()
    assert pair.truncated == joined.truncated


@pytest.mark.parametrize("max_tokens", [5, 30])
def test_a_row_alone_is_laid_as_among_others(tiny_encoder, max_tokens):
    tokenizer = Tokenizer.load(tiny_encoder)
    texts = ["a film", "the script is flawless", "", "Low Tide drags"]
    first, second = (tokenizer.pieces(side, limit=50) for side in (texts, texts[::-1]))
    for lay in (
        lambda rows: tokenizer.template.single(first, rows, max_tokens=max_tokens),
        lambda rows: tokenizer.template.pair(first, second, rows, max_tokens=max_tokens),
    ):
        alone = [lay(np.array([row])) for row in range(len(texts))]
        together, joined = lay(None), Tokens.concat(alone)
        for field in ("ids", "types", "offsets", "longest", "truncated"):
            found, wanted = getattr(joined, field), getattr(together, field)
            np.testing.assert_array_equal(found, wanted, strict=field in ("ids", "types"))


def test_sides_cut_before_are_judged_by_their_whole_length(tiny_encoder):
    """Both sides arrive cut to 9 pieces; the odd piece still goes to the side that was longer."""
    tokenizer = Tokenizer.load(tiny_encoder)
    for texts in (("a " * 40, "b " * 30), ("a " * 30, "b " * 40)):
        pair = [(texts[0].strip(), texts[1].strip())]
        first, second = (tokenizer.pieces([text], limit=9) for text in pair[0])
        cut = tokenizer.template.pair(first, second, max_tokens=12)
        whole = [tokenizer.pieces([text], limit=99) for text in pair[0]]
        assert cut.ids.tolist() == tokenizer.template.pair(*whole, max_tokens=12).ids.tolist()
        assert cut.truncated == 1


def test_pieces_lost_before_the_template_count_as_truncated(tiny_encoder):
    tokenizer = Tokenizer.load(tiny_encoder)
    cut = tokenizer.pieces(["a film", "the film is a film"], limit=3)
    assert tokenizer.template.single(cut, max_tokens=50).truncated == 1
    whole = tokenizer.pieces(["a film", "a film"], limit=3)
    assert tokenizer.template.pair(cut, whole, max_tokens=50).truncated == 1
    assert tokenizer.template.pair(whole, cut, max_tokens=50).truncated == 1


def test_a_tokenizer_without_special_tokens_has_a_bare_template():
    backend = Backend(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    template = Template.probe(backend)
    pieces = Pieces(np.array([0, 1], np.int32), np.array([0, 1, 2]), np.array([1, 1]))
    tokens = template.single(pieces, max_tokens=1)
    assert tokens.ids.tolist() == [0, 1]
    assert template.special_ids == frozenset()


def test_unequal_columns_are_refused(tiny_encoder):
    tokenizer = Tokenizer.load(tiny_encoder)
    first, second = tokenizer.pieces(["a", "b"], limit=9), tokenizer.pieces(["a"], limit=9)
    with pytest.raises(TercetError, match="not 2 and 1"):
        tokenizer.template.pair(first, second, max_tokens=9)
