"""Typing errors and casing, which keep the meaning."""

from __future__ import annotations

import random
import re

WORDS_PER_TYPO = 8
_WORD = re.compile(r"[A-Za-z]{4,}")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    for row in _ROWS
    for place, key in enumerate(row)
}


def typos(text: str, seed: int) -> str | None:
    """Typing errors in one word of eight: letters swapped, dropped, doubled or slipped."""
    draw = random.Random(f"{seed} {text}")
    words = list(_WORD.finditer(text))
    if not words:
        return None
    count = max(1, round(len(text.split()) / WORDS_PER_TYPO))
    chosen = draw.sample(words, min(count, len(words)))
    for word in sorted(chosen, key=lambda match: match.start(), reverse=True):
        text = text[: word.start()] + _mistype(word.group(), draw) + text[word.end() :]
    return text


def _mistype(word: str, draw: random.Random) -> str:
    """One visible error, not in the first letter, where people make few."""
    places = list(range(1, len(word) - 1))
    draw.shuffle(places)
    kinds = ["swap", "drop", "double", "slip"]
    kind = draw.choice(kinds)
    at = next((place for place in places if word[place] != word[place + 1]), places[0])
    if kind == "swap" and word[at] != word[at + 1]:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind == "double":
        return word[: at + 1] + word[at:]
    neighbours = _NEIGHBOURS[word[at].lower()]
    if kind == "slip" and neighbours:
        return word[:at] + draw.choice(neighbours) + word[at + 1 :]
    return word[:at] + word[at + 1 :]


def casing(text: str, seed: int) -> str | None:
    """All capitals, or none where it was all capitals."""
    changed = text.lower() if text.isupper() else text.upper()
    return changed if changed != text else None
