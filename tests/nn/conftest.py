"""What the tests of encoders share: ragged batches by lengths, and real sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tercet.text.tokens import Tokens

MakeTokens = Callable[[Sequence[Sequence[int]]], Tokens]


@pytest.fixture(scope="session")
def make_tokens() -> MakeTokens:
    """Rows of ids -> Tokens, all of type 0."""

    def make(rows: Sequence[Sequence[int]]) -> Tokens:
        lengths = [len(row) for row in rows]
        ids = np.concatenate([np.asarray(row, np.int32) for row in rows] or [np.zeros(0, np.int32)])
        return Tokens(
            ids=ids,
            types=np.zeros_like(ids),
            offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]),
            longest=max(lengths, default=0),
            truncated=0,
        )

    return make


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """Sentences of mixed length, not sorted by it."""
    return [
        "How do I read a book?",
        "No.",
        "A gripping film, beautifully shot, that never quite decides what it wants to say about"
        " the people who live in the small town where its long, sad story of three brothers and"
        " their father takes place, one winter after another.",
        "What is the best way to learn to play the piano at home without a teacher?",
        "The man is playing the guitar on a stage in front of a large crowd.",
        "Yes!",
        "Which is the best way to learn the piano at home without any teacher at all?",
        "A woman is slicing an onion.",
    ]
