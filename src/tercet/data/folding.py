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
