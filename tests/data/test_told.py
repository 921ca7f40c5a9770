"""How much words tell of labels."""

from __future__ import annotations

import random

import pytest

from tercet.data.told import told_share


def test_words_that_tell_all_or_nothing() -> None:
    draw = random.Random(1)
    labels = [draw.choice(["red", "green", "blue"]) for _ in range(300)]
    fillers = [" ".join(draw.choices("abcdefgh", k=5)) for _ in labels]
    told = [f"{filler} It_is_{label}" for filler, label in zip(fillers, labels, strict=True)]
    assert told_share(told, labels) == 1.0
    assert abs(told_share(fillers, labels)) < 0.15
    assert told_share(["same"] * 300, labels) == pytest.approx(0.0, abs=0.05)


def test_part_of_the_labels() -> None:
    draw = random.Random(2)
    labels = [draw.choice("ab") for _ in range(1000)]
    # Half of the rows say their label, the others nothing: half of the mistakes are avoided.
    texts = [f"x {label if draw.random() < 0.5 else ''}" for label in labels]
    assert told_share(texts, labels) == pytest.approx(0.5, abs=0.1)
    assert told_share([], []) == 0.0
    assert told_share(["one row"], ["a"]) <= 0.0
