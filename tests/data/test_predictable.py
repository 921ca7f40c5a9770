"""How well words predict labels."""

from __future__ import annotations

import random

import pytest

from tercet.data.predictable import predictable_share


def test_words_that_predict_all_or_nothing() -> None:
    draw = random.Random(1)
    labels = [draw.choice(["red", "green", "blue"]) for _ in range(300)]
    fillers = [" ".join(draw.choices("abcdefgh", k=5)) for _ in labels]
    telling = [f"{filler} It_is_{label}" for filler, label in zip(fillers, labels, strict=True)]
    assert predictable_share(telling, labels) == 1.0
    assert abs(predictable_share(fillers, labels)) < 0.15
    assert predictable_share(["same"] * 300, labels) == pytest.approx(0.0, abs=0.05)


def test_part_of_the_labels() -> None:
    draw = random.Random(2)
    labels = [draw.choice("ab") for _ in range(1000)]
    # Half of the rows say their label, the others nothing: half of the mistakes are avoided.
    texts = [f"x {label if draw.random() < 0.5 else ''}" for label in labels]
    assert predictable_share(texts, labels) == pytest.approx(0.5, abs=0.1)
    assert predictable_share([], []) == 0.0
    assert predictable_share(["one row"], ["a"]) <= 0.0
