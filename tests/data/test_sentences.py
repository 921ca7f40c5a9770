"""Cutting texts into sentences."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tercet.data.sentences import cut_sentences


def test_sentences_end_at_marks_and_line_breaks() -> None:
    text = 'I liked it ! " Did you ? " he said . <br /><br />It ends at 3.5 stars , e.g. here'
    assert cut_sentences(text) == [
        "I liked it !",
        '" Did you ?',
        '" he said .',
        "It ends at 3.5 stars , e.g.",
        "here",
    ]


@given(st.text())
def test_letters_stay_in_their_order(text: str) -> None:
    kept = [letter for part in cut_sentences(text) for letter in part if letter.isalpha()]
    without_breaks = re.sub(r"<\s*br\s*/?>", "", text, flags=re.IGNORECASE)
    assert kept == [letter for letter in without_breaks if letter.isalpha()]


def test_a_text_without_letters_stays_whole() -> None:
    assert cut_sentences("10/10 . 12 !") == ["10/10 . 12 !"]
