"""Which columns of a file are likely its texts and its label, and what kind of labels it has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from tercet.data.columns import LABELS, TEXTS
from tercet.data.labels import DECIMAL_COMMA
from tercet.data.profiles import Profile, are_lists
from tercet.errors import ArgumentError, shorten

LabelKind = Literal["classes", "multi-label", "grades"]
KINDS: tuple[LabelKind, ...] = get_args(LabelKind)

FEW_GRADES = 6  # whole numbers with fewer values are classes
LABEL_NAMES = (
    *LABELS, "labels", "class", "classes", "category", "categories", "target", "intent", "topic",
    "topics", "tag", "tags", "team", "queue", "rating", "stars", "grade", "same", "duplicate",
    "relation", "y",
)  # fmt: skip
"""Usual names of label columns, the likeliest first."""
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
    able = [each for name, each in profiles.items() if each.is_label and name not in texts]
    lower = {each.name.lower(): each.name for each in able}
    for known in LABEL_NAMES:
        if known in lower:
            return lower[known]
    flags = [each.name for each in able if each.name.lower().startswith("is_")]
    ranked = flags or [each.name for each in sorted(able, key=lambda each: each.distinct)]
    if not ranked:
        raise ArgumentError(f"{path}: {_no_label(profiles, texts)}", "label")
    if len(ranked) > 1:
        others = ", ".join(f"`{name}`" for name in ranked[1:6])
        doubts.append(f"the label is `{ranked[0]}`, but it could be {others}: say --label COLUMN.")
    return ranked[0]


def _no_label(profiles: dict[str, Profile], texts: Sequence[str]) -> str:
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
    objects = [f"`{each.name}`" for each in profiles.values() if each.objects]
    nested = ""
    if objects:
        hold = "holds objects" if len(objects) == 1 else "hold objects"
        nested = f" ({', '.join(objects)} {hold}: write what is in them as columns)"
    listed = ", ".join(f"`{name}`" for name in profiles)
    return (
        f"no column looks like a label, with values that recur; its columns are {listed}{nested}; "
        "name one with `label`."
    )


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
        texts = sorted((each for each in others if each.filled), key=lambda each: -each.characters)[
            :1
        ]
    if not texts:
        listed = ", ".join(f"`{name}`" for name in profiles)
        raise ArgumentError(
            f"{path}: no column looks like a text; its columns are {listed}; name one with `text`.",
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
            f"{listed} are read as the two texts of a pair: say --text COLUMN for one of them."
        )
        return [each.name for each in texts]
    longest = max(texts, key=lambda each: each.words)
    doubts.append(
        f"{listed} are texts, and `{longest.name}` is read: say --text COLUMN for another one, or "
        "--text twice for pairs."
    )
    return [longest.name]


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
            f"`{label.name}` is read as any number of labels per row: say --kind classes if each "
            "value is one class."
        )
        return "multi-label"
    if not label.numeric or label.distinct <= 2:
        return "classes"
    if any(DECIMAL_COMMA.fullmatch(value) for value in label.values if value is not None):
        doubts.append(
            f"`{label.name}` is read as grades with a decimal comma: say --kind multi-label if "
            "cells hold several labels."
        )
        return "grades"
    called = label.name.lower() in GRADE_NAMES
    certain = called and label.name.lower() != "score" and label.distinct >= FEW_GRADES
    if label.has_fractions or certain:
        return "grades"
    graded = label.distinct >= FEW_GRADES or (called and label.distinct > 3)
    kind: LabelKind = "grades" if graded else "classes"
    other = "classes" if graded else "grades"
    doubts.append(
        f"the {label.distinct} numbers in `{label.name}` are read as {kind}: say --kind {other} "
        "otherwise."
    )
    return kind
