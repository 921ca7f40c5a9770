"""Longer texts, such as reviews, cut into sentences."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?])\s+|\s*<\s*br\s*/?>\s*", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")


def cut_sentences(text: str) -> list[str]:
    """Its sentences, those without a letter left out; the whole text where none has any.

    One ends at `.`, `!` or `?` before a space and at a line break of HTML, so a text is now and
    then cut after an abbreviation: a teacher has an answer to that part too.
    """
    return [part.strip() for part in _END.split(text) if _LETTER.search(part)] or [text]
