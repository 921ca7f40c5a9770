"""What a labelled file is about: which columns are texts and labels, and what kind of labels."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from tercet.data.columns import LABELS, TEXTS, find_column, is_name
from tercet.data.delimited import OPEN, Reading
from tercet.data.files import find_file
from tercet.data.labels import in_order, label_key, parse_number, split_labels
from tercet.data.readers import column_names, read_rows
from tercet.errors import ArgumentError, TercetError, shorten
from tercet.specs import Column

LabelKind = Literal["classes", "multi-label", "grades"]
KINDS: tuple[LabelKind, ...] = get_args(LabelKind)

LOOKED_AT = 100_000  # rows; more would not change what a file is about
MOST_CLASSES = 1000
FEW_GRADES = 6  # whole numbers with fewer values are classes
SHOWN_CLASSES = 8
SAMPLE = 2000
SEPARATORS = (";", "|", ",")
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
_FACT = re.compile(r"(?=.*\d)[\d\s:./+-]{6,}([TZ][\d:.+Z-]*|[AP]M)?|\S+@\S+|\w+://\S+", re.I)
"""Dates, times, telephone numbers, mail addresses and links: neither texts nor labels."""
_NUMBERED = re.compile(r"(.+?)[ _-]?(1|2|a|b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a file is about.

    texts: one text column, or two of pairs; label: the label column
    names: of the classes or labels; empty for grades
    counts: rows of each class or label
    range: the lowest and highest grade
    separator: between the labels of a cell, if it is not a list
    rows: rows that can be used; left_out: rows without a text or a label
    duplicates: rows whose texts are in an earlier row; conflicts: those with another label
    sample: some of the texts
    doubts: guesses that are not certain, and how to change them
    """

    path: Path
    texts: tuple[Column, ...]
    label: Column
    kind: LabelKind
    names: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    range: tuple[float, float] | None = None
    separator: str | None = None
    rows: int
    left_out: int = 0
    duplicates: int = 0
    conflicts: int = 0
    sample: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def is_pair(self) -> bool:
        return len(self.texts) == 2

    def sentences(self) -> list[str]:
        """What was understood, for a person."""
        columns = " and ".join(f"`{column}`" for column in self.texts)
        what = "pairs of texts" if self.is_pair else "texts"
        found = [
            f"{self.path.name}: {self.rows:,} {what} in {columns}, {self._labels()} in "
            f"`{self.label}`."
        ]
        notes = []
        if self.left_out:
            rows, are = ("row", "is") if self.left_out == 1 else ("rows", "are")
            notes.append(f"{self.left_out:,} {rows} without a text or a label {are} left out")
        if self.duplicates:
            conflicts = f", {self.conflicts:,} of them with another label" if self.conflicts else ""
            repeat = "row repeats" if self.duplicates == 1 else "rows repeat"
            notes.append(f"{self.duplicates:,} {repeat} the texts of an earlier row{conflicts}")
        found += [f"{'; '.join(notes)}."] if notes else []
        return [*found, *(f"Not certain: {doubt}" for doubt in self.doubts)]

    def _labels(self) -> str:
        if self.kind == "grades":
            assert self.range is not None
            return f"grades from {self.range[0]:g} to {self.range[1]:g}"
        ordered = sorted(self.names, key=lambda name: -self.counts[name])
        shares = [
            f"{shorten(name, 30)} {self.counts[name] / max(1, self.rows):.0%}"
            for name in ordered[:SHOWN_CLASSES]
        ]
        more = f" and {len(ordered) - SHOWN_CLASSES} more" if len(ordered) > SHOWN_CLASSES else ""
        sort = "classes" if self.kind == "classes" else "labels, any number per row"
        return f"{len(self.names)} {sort} ({', '.join(shares)}{more})"


@dataclass(frozen=True, slots=True)
class _Profile:
    """A column: its values (None where one is missing) and what they look like.

    facts: whether all are dates, addresses and the like
    """

    name: str
    values: list[str | None]
    filled: int
    distinct: int
    numeric: bool
    words: float
    characters: float
    facts: bool

    @classmethod
    def of(cls, name: str, values: list[str | None]) -> _Profile:
        filled = [value for value in values if value is not None]
        count = max(1, len(filled))
        numeric = bool(filled) and all(_is_number(value) for value in filled)
        return cls(
            name=name,
            values=values,
            filled=len(filled),
            distinct=len(set(filled)),
            numeric=numeric,
            words=sum(len(value.split()) for value in filled) / count,
            characters=sum(map(len, filled)) / count,
            facts=not numeric and all(_FACT.fullmatch(value) for value in filled[:SAMPLE]),
        )

    @property
    def is_id(self) -> bool:
        lower = self.name.lower()
        if lower in ("", "id", "idx", "index") or lower.endswith(("_id", " id")):
            return True
        unique = self.filled > 1 and self.distinct == self.filled and self.words <= 1.0
        return unique and not self.has_fractions

    @property
    def has_fractions(self) -> bool:
        """Whether its values are numbers, not all of them whole."""
        return self.numeric and any(
            not float(value).is_integer() for value in self.values if value is not None
        )

    @property
    def is_text(self) -> bool:
        varied = self.distinct > 0.2 * self.filled
        long = self.characters >= 8.0 and self.words >= 1.5
        return not (self.numeric or self.facts) and varied and long and not self.has_lists

    @property
    def has_lists(self) -> bool:
        """Whether its cells hold several labels, as far as the first ones tell."""
        some = replace(self, values=self.values[:SAMPLE])
        return _are_lists(some) or _separator(some) is not None

    @property
    def is_label(self) -> bool:
        return self.distinct >= 2 and not (self.is_id or self.is_text or self.facts)


def look_at(
    path: str | Path,
    *,
    text: Sequence[Column] = (),
    label: Column | None = None,
    kind: LabelKind | None = None,
) -> Look:
    """What a labelled file is about; what is given is not guessed.

    text: one column, or two for pairs
    """
    path = find_file(path)
    named = any(is_name(column) for column in (*text, *(() if label is None else (label,))))
    reading = Reading(header=True) if named else OPEN
    names = column_names(path, reading)
    chosen = [names[find_column(column, names, path=path)] for column in text]
    target = None if label is None else names[find_column(label, names, path=path)]
    profiles = _profiles(path, names, reading)
    doubts: list[str] = []
    if target is None:
        target = _label_column(path, profiles, chosen, doubts)
    if not chosen:
        chosen = _text_columns(path, profiles, target, doubts)
    texts = [profiles[name] for name in chosen]
    return _understood(path, texts, profiles[target], kind, doubts)


def _profiles(path: Path, names: Sequence[str], reading: Reading) -> dict[str, _Profile]:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TercetError(f"{path}: two columns are called `{twice}`; rename one of them.")
    columns: list[list[str | None]] = [[] for _ in names]
    for row in islice(read_rows(path, list(names), reading, lists=list(names)), LOOKED_AT):
        if row.problem is not None:
            continue
        for values, value in zip(columns, row.values, strict=True):
            values.append(value)
    if not columns or not columns[0]:
        raise TercetError(f"{path}: contains no rows.")
    return {name: _Profile.of(name, values) for name, values in zip(names, columns, strict=True)}


def _label_column(
    path: Path, profiles: dict[str, _Profile], texts: Sequence[str], doubts: list[str]
) -> str:
    able = [each for name, each in profiles.items() if each.is_label and name not in texts]
    lower = {each.name.lower(): each.name for each in able}
    for known in LABEL_NAMES:
        if known in lower:
            return lower[known]
    flags = [each.name for each in able if each.name.lower().startswith("is_")]
    ranked = flags or [each.name for each in sorted(able, key=lambda each: each.distinct)]
    if not ranked:
        listed = ", ".join(f"`{name}`" for name in profiles)
        raise ArgumentError(
            f"{path}: no column looks like a label, with values that recur; its columns are "
            f"{listed}; name one with `label`.",
            "label",
        )
    if len(ranked) > 1:
        others = ", ".join(f"`{name}`" for name in ranked[1:6])
        doubts.append(f"the label is `{ranked[0]}`, but it could be {others}: say --label COLUMN.")
    return ranked[0]


def _text_columns(
    path: Path, profiles: dict[str, _Profile], label: str, doubts: list[str]
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


def _doubtful_texts(texts: Sequence[_Profile], doubts: list[str]) -> list[str]:
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


def _understood(
    path: Path,
    texts: Sequence[_Profile],
    label: _Profile,
    kind: LabelKind | None,
    doubts: list[str],
) -> Look:
    lists = _are_lists(label)
    separator = None if lists else _separator(label)
    if kind is None:
        kind = _kind(label, several=lists or separator is not None, doubts=doubts)
    if kind == "multi-label" and separator is None and not lists:
        separator = _likely_separator(label)
    empty_is_none = kind == "multi-label"
    rows = [
        (tuple(cells), cell or "")
        for *cells, cell in zip(*(each.values for each in texts), label.values, strict=True)
        if all(cells) and (empty_is_none or cell is not None)
    ]
    if not rows:
        raise TercetError(f"{path}: no row has both a text and a label.")
    counts: Counter[str] = Counter()
    spelling: dict[str | float, str] = {}
    for _, cell in rows:
        parts = split_labels(cell, separator) if kind == "multi-label" else [cell]
        counts.update(spelling.setdefault(label_key(part), part) for part in parts)
    duplicates, conflicts = _repeated(rows)
    return Look(
        path=path,
        texts=tuple(_column(each.name) for each in texts),
        label=_column(label.name),
        kind=kind,
        names=[] if kind == "grades" else _names(path, label, spelling),
        counts={} if kind == "grades" else dict(counts),
        range=_range(path, label, counts) if kind == "grades" else None,
        separator=separator if kind == "multi-label" else None,
        rows=len(rows),
        left_out=len(label.values) - len(rows),
        duplicates=duplicates,
        conflicts=conflicts,
        sample=tuple(text for cells, _ in rows[:SAMPLE] for text in cells if text),
        doubts=tuple(doubts),
    )


def _kind(label: _Profile, *, several: bool, doubts: list[str]) -> LabelKind:
    if several:
        if _are_lists(label):
            return "multi-label"
        doubts.append(
            f"`{label.name}` is read as any number of labels per row: say --kind classes if each "
            "value is one class."
        )
        return "multi-label"
    if not label.numeric or label.distinct <= 2:
        return "classes"
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


def _are_lists(label: _Profile) -> bool:
    cells = [value for value in label.values if value is not None]
    return bool(cells) and all(value.startswith("[") and _is_json_list(value) for value in cells)


def _is_json_list(cell: str) -> bool:
    try:
        return isinstance(json.loads(cell), list)
    except ValueError:
        return False


def _separator(label: _Profile) -> str | None:
    """What separates the labels of a cell, if splitting there leaves few labels that recur."""
    cells = [value for value in label.values if value is not None]
    if label.numeric or not cells:
        return None
    for separator in SEPARATORS:
        split = [cell for cell in cells if separator in cell]
        if len(split) < 0.05 * len(cells):
            continue
        parts = Counter(part for cell in cells for part in split_labels(cell, separator))
        recur = sum(count >= 2 for count in parts.values()) >= 0.8 * len(parts)
        if recur and 2 <= len(parts) <= MOST_CLASSES and len(parts) < label.distinct:
            return separator
    return None


def _likely_separator(label: _Profile) -> str:
    cells = [value for value in label.values if value is not None]
    return max(SEPARATORS, key=lambda separator: sum(separator in cell for cell in cells))


def _repeated(rows: Sequence[tuple[tuple[str | None, ...], str]]) -> tuple[int, int]:
    """How many rows repeat the texts of an earlier row, and how many of these differ in label."""
    seen: dict[tuple[str, ...], set[str]] = defaultdict(set)
    duplicates = conflicts = 0
    for texts, label in rows:
        key = tuple(" ".join((text or "").casefold().split()) for text in texts)
        if key in seen:
            duplicates += 1
            conflicts += label not in seen[key]
        seen[key].add(label)
    return duplicates, conflicts


def _names(path: Path, label: _Profile, labels: dict[str | float, str]) -> list[str]:
    """The names of classes or labels, in the order of their numbers."""
    if len(labels) < 2:
        found = f"only one label, {next(iter(labels.values()), '')!r}"
        raise TercetError(f"{path}: column `{label.name}` has {found}; a task needs two or more.")
    if len(labels) > MOST_CLASSES:
        raise ArgumentError(
            f"{path}: column `{label.name}` has {len(labels):,} different labels; it looks like "
            "text or grades: name another column with `label`.",
            "label",
        )
    return in_order(labels)


def _range(path: Path, label: _Profile, counts: Counter[str]) -> tuple[float, float]:
    numbers = [parse_number(value) for value in counts]
    wrong = [v for v, number in zip(counts, numbers, strict=True) if number is None]
    if wrong:
        raise TercetError(
            f"{path}: column `{label.name}` holds {shorten(wrong[0])!r}, which is not a grade: a "
            "number is expected."
        )
    low, high = min(n for n in numbers if n is not None), max(n for n in numbers if n is not None)
    if low == high:
        raise TercetError(f"{path}: column `{label.name}` has no two different grades.")
    return low, high


def _column(name: str) -> Column:
    return int(name) if name.isdecimal() else name


def _is_number(value: str) -> bool:
    number = parse_number(value)
    return number is not None and math.isfinite(number)
