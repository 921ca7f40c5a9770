"""Words in another order: two words, the two sides of a relation, or both parts of an "and"."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import combinations

from tercet.data.changes.english import (
    DETERMINERS,
    WORD,
    Span,
    beside,
    ending,
    is_function_word,
    names_in,
)

_LEAST_LETTERS = 4
_JOINT = frozenset({"and", "or", "nor"})
_THING = rf"((?:(?i:{DETERMINERS}) )?[A-Za-z][A-Za-z'-]+)"
_RELATIONS = "before|after|over|under|above|below|behind|inside|without|into|onto|through"
_RELATION = re.compile(
    rf"\b{_THING} (?:{_RELATIONS}) {_THING}\b"
    rf"|\bfrom {_THING} to {_THING}\b"
    rf"|\b{_THING} (?:is|are|was|were|be) (?:more |less )?[a-z]+ than {_THING}\b"
)
_SYMMETRIC = re.compile(
    r"\b(?:same|differ\w*|between|equals?|vs|versus|compar\w*|both|together|marr\w+|similar\w*)\b",
    re.IGNORECASE,
)
_CONJUNCTS = re.compile(r"(?<![\w'-])([A-Za-z]{3,}) (and|or) ([A-Za-z]{3,})(?![\w'-])")


def words(text: str, seed: int) -> str | None:
    """Two words of the same kind, between words of the same kinds, trade places: `some black books
    on good holes`."""
    alike: dict[tuple[str, bool, bool], list[Span]] = {}
    for match in WORD.finditer(text):
        word = match[0]
        if len(word) >= _LEAST_LETTERS and word.islower() and not is_function_word(word):
            kind = (ending(word), *beside(text, match.span()))
            alike.setdefault(kind, []).append(match.span())
    pairs = [
        (first, second)
        for spans in alike.values()
        for first, second in combinations(spans, 2)
        if _cut(text, first) != _cut(text, second) and not _are_joint(text[first[1] : second[0]])
    ]
    return _one_swapped(text, pairs, seed)


def roles(text: str, seed: int) -> str | None:
    """Two names, or the two sides of `from ... to` or `before`, trade places.

    None where a word such as `same` or `between` says that the order may not matter.
    """
    if _SYMMETRIC.search(text):
        return None
    return _one_swapped(text, [*_relations(text), *_two_names(text)], seed)


def conjuncts(text: str, seed: int) -> str | None:
    """`cats and dogs` becomes `dogs and cats`, which means the same.

    Only where nothing beside them can belong to one of the two alone.
    """
    pairs = []
    for match in _CONJUNCTS.finditer(text):
        first, second = match[1], match[3]
        alike = first[0].isupper() == second[0].isupper() and ending(first) == ending(second)
        content = not (is_function_word(first) or is_function_word(second))
        if alike and content and first != second and not any(beside(text, match.span())):
            pairs.append((match.span(1), match.span(3)))
    return _one_swapped(text, pairs, seed)


def _are_joint(between: str) -> bool:
    """Whether only `and`, `or` or a comma is between two words, or nothing."""
    rest = [word for word in WORD.findall(between) if word not in _JOINT]
    return not rest


def _relations(text: str) -> Iterator[tuple[Span, Span]]:
    for match in _RELATION.finditer(text):
        spans = [match.span(group) for group in range(1, 7) if match[group] is not None]
        sides = [_cut(text, span) for span in spans]
        ends = [side.split()[-1] for side in sides]
        # A verb, or one word of several, has no place on the other side.
        verbs = any(ending(side) in ("ed", "ing") for side in sides)
        whole = " " in sides[0] or not beside(text, spans[0])[0]
        whole = whole and not beside(text, spans[1])[1]
        same = sides[0].lower() == sides[1].lower()
        if whole and not (same or verbs or any(map(is_function_word, ends))):
            yield spans[0], spans[1]


def _two_names(text: str) -> Iterator[tuple[Span, Span]]:
    for first, second in combinations(names_in(text), 2):
        if _cut(text, first) != _cut(text, second) and not _are_joint(text[first[1] : second[0]]):
            yield first, second


def _cut(text: str, span: Span) -> str:
    return text[span[0] : span[1]]


def _one_swapped(text: str, pairs: list[tuple[Span, Span]], seed: int) -> str | None:
    """The text with the two parts of one of the pairs in each other's place."""
    if not pairs:
        return None
    (start, end), (begin, stop) = random.Random(f"{seed} {text}").choice(pairs)
    swapped = text[:start] + text[begin:stop] + text[end:begin] + text[start:end] + text[stop:]
    return swapped if swapped != text else None
