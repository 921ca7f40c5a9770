"""Texts compared by their letters and digits alone."""

from __future__ import annotations

import re

_OTHERS = re.compile(r"[\W_]+")


def fold(text: str) -> str:
    """A text without case, spaces and punctuation: `Don't!` and `do n't` are the same.

    A text without letters and digits keeps its signs.
    """
    lower = text.casefold()
    if "rb-" in lower:  # so trees write brackets
        lower = lower.replace("-lrb-", " ").replace("-rrb-", " ")
    return _OTHERS.sub("", lower) or lower.strip()


def shared_words(first: str, second: str) -> float:
    """The share of common words among all words of two texts, without case."""
    left, right = (set(text.lower().split()) for text in (first, second))
    return len(left & right) / max(1, len(left | right))
