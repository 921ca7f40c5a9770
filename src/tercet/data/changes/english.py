"""What rules know of English: words without a meaning of their own, words and names in a text."""

from __future__ import annotations

import re
from itertools import dropwhile

Span = tuple[int, int]
_FUNCTION_WORDS = """
a about above after again against all also am among an and another any are around as at away be
became because become been before behind being below between beyond both but by can cannot could
did do does doing done down during each either else ever every few for from get gets got had has
have having he her here hers herself him himself his how however i if in into is it its itself
just least less let like made make makes many may me might mine more most much must my near
neither never no nor not now of off often on once one only onto or other others our ours out
over own per quite rather same shall she should since so some still such than that the their
theirs them then there these they this those though through thus to too toward towards under
unless until up upon us very via was we were what whatever when where whether which while who
whom whose why will with within without would yes yet you your yours
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
DETERMINERS = "the|a|an|my|your|his|her|our|their|its|this|that|these|those"
WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
NAME = re.compile(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
_ENDINGS = ("ing", "ed", "ly", "ion", "ment", "ness", "ous", "ful", "ive", "able", "er", "al", "s")


def is_function_word(word: str) -> bool:
    return word.lower() in FUNCTION_WORDS


def ending(word: str) -> str:
    """The ending that says what kind of word it may be; empty for plain words."""
    return next((end for end in _ENDINGS if word.endswith(end)), "")


def names_in(text: str) -> list[Span]:
    """Where names are, by their capitals; none in headlines, where all words may have them.

    Function words that begin a sentence are not part of a name.
    """
    words = WORD.findall(text)
    capitals = sum(word[0].isupper() for word in words)
    if 2 * capitals > len(words) + 2:
        return []
    spans = []
    for match in NAME.finditer(text):
        parts = match[0].split(" ")
        begins = list(dropwhile(is_function_word, parts))
        if begins:
            spans.append((match.end() - len(" ".join(begins)), match.end()))
    return spans


def beside(text: str, span: Span) -> tuple[bool, bool]:
    """Whether a word with a meaning of its own is before a part of a text, and after it."""
    before, after = text[: span[0]].rstrip(" "), text[span[1] :].lstrip(" ")
    left, right = before[before.rfind(" ") + 1 :], after.partition(" ")[0]
    return _has_meaning(left, at=-1), _has_meaning(right, at=0)


def _has_meaning(word: str, *, at: int) -> bool:
    """Whether a word is next to a text, and not a function word or beyond punctuation."""
    return bool(word) and word[at].isalnum() and not is_function_word(word.strip("\"'.,;:!?()"))
