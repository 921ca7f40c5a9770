"""Small changes of a sentence by rule: typing errors and casing, negation and numbers.

Each is a pure function of the text and a seed, and returns None if there is nothing to change.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

WORDS_PER_TYPO = 8
_WORD = re.compile(r"[A-Za-z]{4,}")
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(0, place - 1) : place] + row[place + 1 : place + 2]
    for row in _ROWS
    for place, key in enumerate(row)
}
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|am|can|could|will|would|should|must|might|may|does|do|did|has|have|had)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(can)not\b|\b(wo)(?: ?n't)\b|\b(ca)(?: ?n't)\b| ?n't\b| not\b", re.IGNORECASE
)
_NUMERAL = re.compile(r"(?<![\w.,])\d{1,9}(?![\w]|[.,]\d)")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A rule.

    keeps: whether the meaning stays the same, so that predictions should not change
    """

    name: str
    keeps: bool
    change: Callable[[str, int], str | None]


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


def negation(text: str, seed: int) -> str | None:
    """The first `not` removed, or one added after the first auxiliary verb."""
    if match := _NEGATED.search(text):
        can, would, could = match.groups()
        verb = can or (would and would[0] + "ill") or (could and could + "n") or ""
        return text[: match.start()] + verb + text[match.end() :]
    if match := _AUXILIARY.search(text):
        no = " NOT" if text.isupper() else " not"
        return text[: match.end()] + no + text[match.end() :]
    return None


def numbers(text: str, seed: int) -> str | None:
    """Every whole number, in digits or in words up to ten, replaced by another."""
    draw = random.Random(f"{seed} {text}")

    def other_numeral(match: re.Match[str]) -> str:
        value = int(match.group())
        return str(value + draw.randint(1, max(9, value // 2)))

    def other_word(match: re.Match[str]) -> str:
        old = match.group()
        new = draw.choice([word for word in _NUMBER_WORDS if word != old.lower()])
        return new.capitalize() if old[0].isupper() else new

    changed = _NUMBER_WORD.sub(other_word, _NUMERAL.sub(other_numeral, text))
    return changed if changed != text else None


PERTURBATIONS = (
    Perturbation("typos", True, typos),
    Perturbation("casing", True, casing),
    Perturbation("negation", False, negation),
    Perturbation("numbers", False, numbers),
)
