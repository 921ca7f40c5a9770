"""Splitting longer texts, such as reviews, into sentences."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?])\s+|\s*<\s*br\s*/?>\s*", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")


def cut_sentences(text: str) -> list[str]:
    """The sentences of a text that contain a letter; the whole text if none does.

    A sentence ends at `.`, `!` or `?` before a space and at an HTML line break. A split after an
    abbreviation is harmless: a teacher labels the part too.
    """
    return [part.strip() for part in _END.split(text) if _LETTER.search(part)] or [text]
