"""What in a labelled file may be a mistake, or not be used as its owner expects."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tercet.data.profiles import SAMPLE, Profile, is_number
from tercet.errors import shorten

TRAINING = frozenset({"train", "training"})
MEASURING = frozenset(
    {"dev", "development", "val", "valid", "validation", "eval", "evaluation", "test", "testing"}
)
FLAGS = (frozenset({"0", "1"}), frozenset({"true", "false"}))
MISSING = frozenset(
    {
        "-",
        "--",
        "?",
        "??",
        "n/a",
        "#n/a",
        "na",
        "nan",
        "null",
        "<na>",
        "\\n",
        "(blank)",
        "undefined",
    }
)
"""Lower-case marks that tables have where a value is missing."""
MOSTLY = 0.8
"""The share of numbers from which on what else a column holds is likely a mistake."""
LEAST_NAMED, SHORTEST_NAME = 20, 3
"""Rows, and letters of the names of classes, that tell whether texts hold them."""
MANY_NUMBERS = 4
MANY_FLAGS = 3
SHOWN_GROUPS = 3


def is_split(column: Profile) -> bool:
    """Whether a column says which rows are for training and which for measuring."""
    values = _values(column)
    return bool(values & TRAINING and values & MEASURING) and values <= TRAINING | MEASURING


def splits_of(profiles: Mapping[str, Profile]) -> Iterator[str]:
    """Columns that say what rows are for, which is not followed."""
    for each in filter(is_split, profiles.values()):
        counts = Counter(value for value in each.values if value is not None)
        parts = ", ".join(f"{value} {count:,}" for value, count in counts.most_common())
        yield (
            f"`{each.name}` divides the rows ({parts}), but all of them are used alike: write each "
            'part to a file of its own, fit the one for training, and say `dev="FILE"` for the one '
            "to measure on."
        )


def flags_of(candidates: Sequence[Profile]) -> Iterator[str]:
    """Columns that may be labels and together mark several labels per row."""
    flags = [each for each in candidates if _values(each) in FLAGS]
    if len(flags) >= MANY_FLAGS:
        named = ", ".join(f"`{each.name}`" for each in flags[:6])
        yield (
            f"if {named} mark several labels of a row, write the names of its labels into one "
            f"column, such as `{flags[0].name}; {flags[1].name}`."
        )


def spellings_of(column: str, names: Sequence[str]) -> Iterator[str]:
    """Classes or labels that differ only in case or spaces, most likely by mistake."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[" ".join(name.casefold().split())].append(name)
    alike = [group for group in groups.values() if len(group) > 1]
    if alike:
        shown = "; ".join(", ".join(map(_quoted, group)) for group in alike[:SHOWN_GROUPS])
        more = f"; and {len(alike) - SHOWN_GROUPS} more" if len(alike) > SHOWN_GROUPS else ""
        yield (
            f"`{column}` has names that differ only in case or spaces and are learnt apart "
            f"({shown}{more}): write each in one way."
        )


def missing_of(column: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Classes or labels that may stand for a missing one.

    counts: rows of each class or label
    """
    marks = [name for name in counts if name.lower() in MISSING]
    if marks:
        shown = ", ".join(f"{_quoted(name)} in {counts[name]:,}" for name in marks)
        rows = "row" if sum(counts[name] for name in marks) == 1 else "rows"
        yield (
            f"`{column}` has {shown} {rows}, which is learnt like any other name: delete these "
            "cells if they mean that the label is missing."
        )


def mostly_numbers(column: Profile) -> Iterator[str]:
    """A label column that is not grades only because some cells are no numbers."""
    cells = [value for value in column.values if value is not None]
    others = Counter(value for value in cells if not is_number(value))
    numbers = {value for value in cells if value not in others}
    if others and others.total() <= (1.0 - MOSTLY) * len(cells) and len(numbers) >= MANY_NUMBERS:
        shown = ", ".join(_quoted(value) for value, _ in others.most_common(SHOWN_GROUPS))
        yield (
            f"{len(cells) - others.total():,} cells of `{column.name}` are numbers and "
            f"{others.total():,} are not ({shown}), so that all are read as names: mend or delete "
            "these if the numbers are grades."
        )


def named_in_texts(label: Profile, texts: Sequence[Profile]) -> Iterator[str]:
    """Texts that hold the names of their own classes, and not those of others."""
    cells = zip(*(each.values[:SAMPLE] for each in texts), label.values[:SAMPLE], strict=True)
    rows = [
        (" ".join(text.casefold() for text in each if text), name.casefold())
        for *each, name in cells
        if name is not None
    ]
    if len(rows) < LEAST_NAMED or min(len(name) for _, name in rows) < SHORTEST_NAME:
        return
    share = sum(_has_word(text, name) for text, name in rows) / len(rows)
    if share < MOSTLY or label.numeric:
        return
    names = {name for _, name in rows}
    others = sum(any(_has_word(text, n) for n in names - {name}) for text, name in rows)
    if others <= (1.0 - MOSTLY) * len(rows):
        yield (
            f"{share:.0%} of the texts hold the name of their own class in `{label.name}`, which "
            "a model may learn to look for: take the names out if texts to come are without them."
        )


def _has_word(text: str, word: str) -> bool:
    return word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _values(column: Profile) -> frozenset[str]:
    return frozenset(value.lower() for value in column.values if value is not None)


def _quoted(name: str) -> str:
    return repr(shorten(name, 30))
