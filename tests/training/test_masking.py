from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tercet.objectives.masked_language_model import NOTHING
from tercet.text.tokens import Tokens
from tercet.training.masking import Masked, Masking

CLS, SEP, MASK, VOCABULARY = 1, 2, 3, 500
MASKING = Masking(mask_id=MASK, special_ids=frozenset({0, CLS, SEP, MASK}), vocabulary=VOCABULARY)


def sentences(lengths: list[int]) -> Tokens:
    generator = np.random.default_rng(len(lengths))
    rows = [[CLS, *generator.integers(10, VOCABULARY, size=n), SEP] for n in lengths]
    ids = np.concatenate([np.array(row, np.int32) for row in rows])
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return Tokens(ids, np.zeros_like(ids), offsets, max(lengths) + 2, 0)


def real(masked: Masked) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places and words without those that only fill the shape."""
    words = masked.words.numpy()
    return masked.places.numpy()[words != NOTHING], words[words != NOTHING]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=8),
    st.floats(0.05, 0.6),
    st.integers(0, 1000),
)
def test_a_share_of_every_sentence_is_hidden(lengths: list[int], share: float, seed: int) -> None:
    tokens = sentences(lengths)
    torch.manual_seed(seed)
    masked = MASKING(tokens, share=share)
    hidden, places, words = masked.tokens, *real(masked)
    assert len(masked.places) == len(masked.words)
    assert len(masked.words) % 64 == 0
    assert len(set(places)) == len(places)
    assert np.array_equal(tokens.ids[places], words)
    assert not np.isin(words, [CLS, SEP]).any()
    rows = np.repeat(np.arange(len(lengths)), tokens.lengths)[places]
    expected = [max(1, round(share * n)) if n else 0 for n in lengths]
    assert np.bincount(rows, minlength=len(lengths)).tolist() == expected
    untouched = np.setdiff1d(np.arange(len(tokens.ids)), places)
    assert np.array_equal(hidden.ids[untouched], tokens.ids[untouched])


def test_eight_of_ten_become_the_mask_one_another_word_and_one_stays() -> None:
    tokens = sentences([400] * 50)
    torch.manual_seed(0)
    masked = MASKING(tokens, share=0.5)
    places, words = real(masked)
    now = masked.tokens.ids[places]
    assert np.mean(now == MASK) == pytest.approx(0.8, abs=0.02)
    assert np.mean(now == words) == pytest.approx(0.1, abs=0.02)


def test_the_same_seed_hides_the_same_words() -> None:
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found.append(MASKING(sentences([9, 30, 4]), share=0.2).tokens.ids.tolist())
    assert found[0] == found[1] != found[2]
