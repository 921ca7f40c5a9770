"""Which columns of a file are likely its texts and its label, and what kind of labels it has."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from tercet.data.columns import LABELS, TEXTS
from tercet.data.doubts import flags_of, is_split
from tercet.data.files import kind_of
from tercet.data.labels import DECIMAL_COMMA, parse_number
from tercet.data.predictable import ROWS, predictable_share
from tercet.data.profiles import Profile, are_lists
from tercet.errors import ArgumentError, shorten

LabelKind = Literal["classes", "multi-label", "grades"]
KINDS: tuple[LabelKind, ...] = get_args(LabelKind)

FEW_GRADES = 6  # whole numbers with fewer values are classes
CODE_GAP = 20
"""Whole numbers that use less than one in so many of the values between them are codes."""
LEAST_PREDICTABLE, ROWS_PER_VALUE = 0.1, 10
"""By how much better texts must predict a column to make it the label, and the rows per value that
show it."""
LABEL_NAMES = (
    *LABELS, "labels", "class", "classes", "category", "categories", "target", "intent", "topic",
    "topics", "tag", "tags", "team", "queue", "department", "rating", "stars", "grade", "same",
    "duplicate", "relation", "y",
)  # fmt: skip
"""Usual names of label columns, the likeliest first."""
LABEL_ENDINGS = (
    "label", "labels", "class", "category", "intent", "topic", "tag", "tags", "type", "sentiment",
    "team", "department",
)  # fmt: skip
"""Usual last words of names of label columns, such as `answer_type`, the likeliest first."""
CLASS_NAMES = frozenset(
    {"label", "labels", "class", "classes", "category", "intent", "topic", "team", "code", "id"}
)
"""Last words of names of columns whose whole numbers are classes, however many there are."""
TEXT_NAMES = (
    "body", "message", "content", "review", "comment", "utterance", "question", "description",
    "tweet", "post", "query",
)  # fmt: skip
"""Usual names of text columns beside others that read like text, the likeliest first."""
GRADE_NAMES = frozenset({"similarity", "score", "rating", "grade", "relatedness", "stars"})
PAIRS = (
    ("query", "document"), ("question", "answer"), ("question", "other"), ("anchor", "positive"),
    ("source", "target"), ("left", "right"), ("first", "second"), ("a", "b"),
)  # fmt: skip
"""Names of two text columns that make a pair, besides those that recipes know."""
_NUMBERED = re.compile(r"(.+?)[ _-]?(1|2|a|b)", re.IGNORECASE)


def likely_label(
    path: Path, profiles: dict[str, Profile], texts: Sequence[str], doubts: list[str]
) -> str:
    able = [
        each
        for name, each in profiles.items()
        if each.is_label and name not in texts and not is_split(each)
    ]
    lower = {each.name.lower(): each.name for each in able}
    for known in LABEL_NAMES:
        if known in lower:
            return lower[known]
    ranked = [each.name for each in _ranked(able, profiles, texts)]
    if not ranked:
        raise ArgumentError(f"{path}: {_no_label(path, profiles, texts)}", "label")
    if len(ranked) > 1:
        others = ", ".join(f"`{name}`" for name in ranked[1:6])
        doubts.append(
            f'the label is `{ranked[0]}`, but it could be {others}: say `label="COLUMN"`.'
        )
        doubts += flags_of(able)
    return ranked[0]


def _ranked(
    able: Sequence[Profile], profiles: dict[str, Profile], texts: Sequence[str]
) -> list[Profile]:
    """Likely labels, the likeliest first: if no name speaks for one, that which the texts predict
    clearly best."""
    ranked = sorted(able, key=_rank)
    if len(ranked) < 2 or _rank(ranked[0])[:2] < (True, len(LABEL_ENDINGS)):
        return ranked
    read = [profiles[name] for name in texts] or [p for p in profiles.values() if p.is_text]
    shares = {each.name: _predictability(each, read) for each in ranked}
    best = max(ranked, key=lambda each: shares[each.name])
    if shares[best.name] < max(LEAST_PREDICTABLE, shares[ranked[0].name] + LEAST_PREDICTABLE):
        return ranked
    return [best, *(each for each in ranked if each is not best)]


def _predictability(label: Profile, texts: Sequence[Profile]) -> float:
    """How well texts predict a column; 0 for measured quantities, and for few rows per value."""
    usable = (
        (" ".join(cell for cell in cells if cell), value)
        for value, *cells in zip(label.values, *(each.values for each in texts), strict=True)
        if value is not None and any(cells)
    )
    rows = list(islice(usable, ROWS))
    if label.has_fractions or len(rows) < ROWS_PER_VALUE * len({value for _, value in rows}):
        return 0.0
    return predictable_share([text for text, _ in rows], [value for _, value in rows])


def _rank(label: Profile) -> tuple[bool, int, bool, int]:
    """Sorts likely labels: flags, names that end like those of labels, no measured quantities, and
    few values."""
    last = _last_word(label.name)
    place = LABEL_ENDINGS.index(last) if last in LABEL_ENDINGS else len(LABEL_ENDINGS)
    is_flag = label.name.lower().startswith("is_")
    return not is_flag, place, label.has_fractions, label.distinct


def _last_word(name: str) -> str:
    """`answer_type`, `answerType` and `Answer type` end with `type`."""
    words: list[str] = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    return words[-1].lower() if words else ""


def _no_label(path: Path, profiles: dict[str, Profile], texts: Sequence[str]) -> str:
    """Why no column is a label, and what would be right."""
    called = {each.name.lower(): each for name, each in profiles.items() if name not in texts}
    for name in LABEL_NAMES:
        column = called.get(name)
        if column is not None and column.distinct == 1:
            value = next(value for value in column.values if value is not None)
            return (
                f"column `{column.name}` has only one label, {shorten(value)!r}; a task needs two "
                "or more."
            )
        if column is not None and column.distinct == column.filled > 1 and not column.is_text:
            return (
                f"column `{column.name}` has another value in each of its {column.filled:,} rows; "
                "labels recur. Name another column with `label`."
            )
    listed = ", ".join(f"`{name}`" for name in profiles)
    if kind_of(path) == "text":
        return (
            "has a text per line and no columns; a file with labels is CSV, TSV, JSON lines or "
            "Parquet: rename it if it is one."
        )
    return (
        f"no column looks like a label, with values that recur; its columns are {listed}"
        f"{_nested(profiles)}; name one with `label`."
    )


def _nested(profiles: dict[str, Profile]) -> str:
    """What to do about columns of objects, if there are any."""
    objects = [f"`{each.name}`" for each in profiles.values() if each.objects]
    if not objects:
        return ""
    hold = "holds objects" if len(objects) == 1 else "hold objects"
    return f" ({', '.join(objects)} {hold}: write what is in them as columns)"


def likely_texts(
    path: Path, profiles: dict[str, Profile], label: str, doubts: list[str]
) -> list[str]:
    others = [each for name, each in profiles.items() if name != label and not each.numeric]
    lower = {each.name.lower(): each.name for each in others}
    known = (names[:2] for names in TEXTS)
    for names in (*known, *PAIRS):
        if set(names) <= set(lower):
            return [lower[name] for name in names]
    texts = [each for each in others if each.is_text]
    if not texts:
        plain = [each for each in others if each.filled and not each.objects]
        texts = sorted(plain, key=lambda each: -each.characters)[:1]
    if not texts:
        listed = ", ".join(f"`{name}`" for name in profiles)
        raise ArgumentError(
            f"{path}: no column looks like a text; its columns are {listed}{_nested(profiles)}; "
            "name one with `text`.",
            "text",
        )
    if len(texts) == 1:
        return [texts[0].name]
    if len(texts) == 2 and _are_numbered(texts[0].name, texts[1].name):
        return [each.name for each in texts]
    return _doubtful_texts(texts, doubts)


def _doubtful_texts(texts: Sequence[Profile], doubts: list[str]) -> list[str]:
    """Two columns of similar length are a pair; otherwise the longest text is the one."""
    listed = " and ".join(f"`{each.name}`" for each in texts)
    if len(texts) == 2 and max(t.words for t in texts) <= 2 * min(t.words for t in texts):
        doubts.append(
            f'{listed} are read as the two texts of a pair: say `text="COLUMN"` for one of them.'
        )
        return [each.name for each in texts]
    names = {each.name.lower(): each.name for each in texts}
    usual = [names[name] for name in TEXT_NAMES if name in names]
    read = usual[0] if usual else max(texts, key=lambda each: each.words).name
    doubts.append(
        f"{listed} are texts, and `{read}` is read: "
        'say `text="COLUMN"` for another one, or name two for pairs.'
    )
    return [read]


def _are_numbered(first: str, second: str) -> bool:
    """Whether names differ only by 1 and 2, or a and b, at their ends."""
    found = [_NUMBERED.fullmatch(name) for name in (first, second)]
    if found[0] is None or found[1] is None:
        return False
    ends = (found[0][2].lower(), found[1][2].lower())
    return found[0][1] == found[1][1] and ends in (("1", "2"), ("a", "b"))


def likely_kind(label: Profile, *, several: bool, doubts: list[str]) -> LabelKind:
    if several:
        if are_lists(label):
            return "multi-label"
        doubts.append(
            f"`{label.name}` is read as any number of labels per row: "
            'say `kind="classes"` if each value is one class.'
        )
        return "multi-label"
    if not label.numeric or label.distinct <= 2:
        return "classes"
    if any(DECIMAL_COMMA.fullmatch(value) for value in label.values if value is not None):
        doubts.append(
            f"`{label.name}` is read as grades with a decimal comma: "
            'say `kind="multi-label"` if cells hold several labels.'
        )
        return "grades"
    called = label.name.lower() in GRADE_NAMES
    certain = called and label.name.lower() != "score" and label.distinct >= FEW_GRADES
    if label.has_fractions or certain:
        return "grades"
    coded = _last_word(label.name) in CLASS_NAMES or _are_codes(label)
    graded = (label.distinct >= FEW_GRADES and not coded) or (called and label.distinct > 3)
    kind: LabelKind = "grades" if graded else "classes"
    other = "classes" if graded else "grades"
    doubts.append(
        f"the {label.distinct} numbers in `{label.name}` are read as {kind}: "
        f'say `kind="{other}"` otherwise.'
    )
    return kind


def _are_codes(label: Profile) -> bool:
    """Whether whole numbers recur and are far apart, such as 1200, 3000 and 4711."""
    numbers = {parse_number(value) for value in label.values if value is not None}
    whole = sorted(int(number) for number in numbers if number is not None)
    if len(whole) < 2:
        return False
    step = math.gcd(*(number - whole[0] for number in whole))
    sparse = (whole[-1] - whole[0]) // step > CODE_GAP * len(whole)
    return sparse and label.filled >= 5 * len(whole)
