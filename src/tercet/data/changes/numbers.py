"""Other numbers, in digits and in words."""

from __future__ import annotations

import random
import re

_NUMERAL = re.compile(r"(?<![\w.,])\d{1,9}(?![\w]|[.,]\d)")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)


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
