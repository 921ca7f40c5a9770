"""The texts and labels of a split; every row is used or reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tercet.data.changed_pairs import make_changed_pairs
from tercet.data.files import unit_of
from tercet.data.folding import shared_words
from tercet.data.labels import (
    NO_LABELS,
    LabelRule,
    Labels,
    Parsed,
    UnmappedLabelError,
    WrongLabelError,
)
from tercet.data.layouts import Split, find_split, resolve
from tercet.data.readers import FileRow
from tercet.data.sentences import cut_sentences
from tercet.data.split import SEED, choose_dev
from tercet.data.text_rows import TextRows
from tercet.data.where import rows_where
from tercet.errors import TercetError, shorten
from tercet.specs import ChangesSpec, Column, DataSpec, TaskSpec

SHOWN = 5  # rows listed in a message


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be used: its place and the reason."""

    file: str
    line: int
    column: str
    value: str
    reason: str

    @property
    def place(self) -> str:
        """Its line, or its row number if the file has no lines."""
        return f"{unit_of(Path(self.file))} {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRows:
    """n rows of a split of a task, without their texts.

    labels: int64 classes or float32 grades [n]; int64 0 and 1 [n, classes] where rows may have
        several; None for tasks without labels
    lines: int64 [n], each row's line in its file
    sources: int32 [n], each row's file as an index into `files`
    remark: what a user must know about how the rows were split off; may be empty
    """

    labels: Labels | None
    lines: NDArray[np.int64]
    sources: NDArray[np.int32]
    files: tuple[Path, ...]
    skipped: list[BadRow]
    remark: str = ""

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples(SplitRows):
    """A split of a task as texts: a list of n texts for each text column."""

    texts: tuple[list[str], ...]

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """The examples of these rows [m], in their order."""
        return replace(
            self,
            texts=tuple([column[row] for row in rows.tolist()] for column in self.texts),
            labels=None if self.labels is None else self.labels[rows],
            lines=self.lines[rows],
            sources=self.sources[rows],
        )


def read_examples(task: TaskSpec, split: Split, data_dir: Path) -> Examples:
    """Read all files of a split; bad rows are an error unless the recipe skips them."""
    data = resolve(task.data)
    if data.dev_share is not None:
        return _read_both(task, data_dir)[split]
    if split == "dev":
        dropped = dict.fromkeys(("where", "overlap", "draw", "changes"))
        data = data.model_copy(update=dropped)
    check_columns(task, data, split)
    collected = _Collected(
        data,
        LabelRule.of_task(task),
        labelled=is_labelled(task, split),
        cut=data.sentences and split == "train",
        apart=is_apart(data, split),
    )
    found = _read(collected, find_split(data, split, data_dir))
    drawn = _drawn_rows(len(found), data)
    return found if drawn is None else found.take(drawn)


def _read_both(task: TaskSpec, data_dir: Path) -> dict[Split, Examples]:
    """The training rows of which a share is dev; bad rows are listed with the training rows."""
    data = resolve(task.data)
    assert data.dev_share is not None
    check_columns(task, data, "dev")
    if data.sentences or data.pairs is not None or data.changes is not None:
        raise TercetError(
            f"Layout `{data.layout}` splits dev rows off its training rows: `sentences`, `pairs` "
            "and `changes` need `dev` in files of its own."
        )
    collected = _Collected(data, LabelRule.of_task(task), labelled=has_labels(task))
    whole = _read(collected, find_split(data, "train", data_dir))
    groups = collected.groups if data.group is not None else None
    drawn = _drawn_rows(len(whole), data)
    if drawn is not None:
        whole = whole.take(drawn)
        groups = None if groups is None else [groups[row] for row in drawn]
    # A layout's split must be the same for tasks that read no labels.
    strata = None if task.data.dev_share is None else whole.labels
    chosen = choose_dev(whole.texts, strata, share=data.dev_share, groups=groups)
    train = whole.take(np.setdiff1d(np.arange(len(whole)), chosen.rows))
    if not task.learns_labels:
        train = replace(train, labels=None)
    dev = replace(whole.take(chosen.rows), skipped=[], remark=chosen.remark)
    return {"train": train, "dev": dev}


def _read(collected: _Collected, files: Sequence[Path]) -> Examples:
    data = collected.data
    for path in files:
        collected.add(path)
    if collected.bad and data.on_bad_row == "fail":
        raise TercetError(_refusal(collected.bad, total=collected.rows))
    if not collected.lines:
        raise TercetError(f"{files[0]}: no rows are left.{_why_none(collected)}")
    return collected.finish(files)


def _drawn_rows(rows: int, data: DataSpec) -> NDArray[np.int64] | None:
    """The rows that `draw` keeps, ascending, the same every time; None if it keeps all."""
    if data.draw is None or data.draw >= rows:
        return None
    return np.sort(np.random.default_rng(SEED).permutation(rows)[: data.draw])


def _why_none(collected: _Collected) -> str:
    where = collected.data.where
    if where is None or collected.rows:
        sentences = [collected.remark(), describe_skipped(collected.bad)]
        return "".join(f" {sentence}" for sentence in sentences if sentence)
    return f" Column `{where.column}` of no row matches {' or '.join(where.matches)}."


def read_groups(task: TaskSpec, group: Column, data_dir: Path) -> list[str | None]:
    """The group of each training row of a task that `read_examples` uses, by a column."""
    data = resolve(task.data).model_copy(update={"group": group, "dev": []})
    collected = _Collected(data, LabelRule.of_task(task), labelled=is_labelled(task, "train"))
    for path in find_split(data, "train", data_dir):
        collected.add(path)
    drawn = _drawn_rows(len(collected.groups), data)
    return collected.groups if drawn is None else [collected.groups[row] for row in drawn]


def read_once(tasks: Mapping[str, TaskSpec], data_dir: Path) -> Callable[[str, Split], Examples]:
    """A function that reads a task's split by name; the files of each are read at most once."""

    @cache
    def both(name: str) -> dict[Split, Examples]:
        return _read_both(tasks[name], data_dir)

    @cache
    def read(name: str, split: Split) -> Examples:
        if resolve(tasks[name].data).dev_share is not None:
            return both(name)[split]
        return read_examples(tasks[name], split, data_dir)

    return read


def is_labelled(task: TaskSpec, split: Split) -> bool:
    """Whether a split's rows need labels; a teacher may provide those of training rows."""
    return task.learns_labels if split == "train" else task.predicts


def has_labels(task: TaskSpec) -> bool:
    """Whether the rows of either split need labels; then both are split by them."""
    return is_labelled(task, "train") or is_labelled(task, "dev")


def is_apart(data: DataSpec, split: Split) -> bool:
    """Whether each text of a row becomes a row of its own, from which new pairs are made."""
    return split == "train" and (data.pairs is not None or data.changes is not None)


def check_columns(task: TaskSpec, data: DataSpec, split: Split) -> None:
    """Raise unless a resolved data block has the columns that the modes of the task read."""
    texts = len(data.texts or ())
    if split == "train" and data.sentences and texts != 1:
        raise TercetError(f"`data.sentences` splits one text column, not {texts}.")
    if is_apart(data, split):
        texts = 2
    if is_labelled(task, split) and data.label is None:
        raise TercetError("A task with labels needs `data.label`, the label column.")
    if data.label_separator is not None and not task.multi_label:
        raise TercetError("`data.label_separator` needs `multi_label = true` in the task.")
    for mode, spec in task.modes.items():
        needed = {"single": 1, "bi": spec.objective.bi_texts, "cross": 2}[mode]
        if texts < needed:
            raise TercetError(
                f"Mode `{mode}` with objective `{spec.objective.kind}` reads {needed} text "
                f"columns, but `data.texts` has {texts}."
            )


@dataclass(slots=True)
class _Collected:
    data: DataSpec
    rule: LabelRule
    labelled: bool
    cut: bool = False
    apart: bool = False
    texts: tuple[list[str], ...] = ()
    labels: list[Parsed] = field(default_factory=list)
    groups: list[str | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    rows: int = 0

    def __post_init__(self) -> None:
        columns = 1 if self.apart else len(self.data.texts or ())
        self.texts = tuple([] for _ in range(columns))

    @property
    def label(self) -> Column | None:
        """The label column, if labels are learnt or select rows through `label_map`."""
        return self.data.label if self.labelled or self.data.label_map is not None else None

    def add(self, path: Path) -> None:
        columns = wanted(self.data.texts or (), self.label)
        every = columns if self.data.group is None else [*columns, self.data.group]
        lists = [self.label] if self.label is not None and self.rule.several else []
        before = len(self.lines)
        for row in islice(rows_where(path, every, self.data, lists=lists), self.data.limit):
            self.rows += 1
            needed = row._replace(values=row.values[: len(columns)])
            if self.rule.several and self.label is not None and not needed.values[-1]:
                # A row may have none of the labels.
                needed = needed._replace(values=(*needed.values[:-1], NO_LABELS))
            bad = find_fault(needed, columns, path=path, label=self.label is not None)
            if bad is None and not self._overlaps(row):
                continue
            bad = bad or self._take_label(needed, path)
            if bad is not None:
                self.bad.append(bad)
                continue
            if self.data.group is not None:
                self.groups.append(row.values[-1])
            for values in self._rows_of(row):
                self.lines.append(row.line)
                for texts, value in zip(self.texts, values, strict=False):
                    texts.append(value or "")
        self.counts.append(len(self.lines) - before)

    def _rows_of(self, row: FileRow) -> Sequence[Sequence[str | None]]:
        """The rows that a row of the file becomes."""
        if self.cut:
            return [[sentence] for sentence in cut_sentences(row.values[0] or "")]
        texts = row.values[: len(self.data.texts or ())]
        if self.apart:
            return [[text] for text in texts]
        return [row.values]

    def _overlaps(self, row: FileRow) -> bool:
        least = self.data.overlap
        return least is None or shared_words(row.values[0] or "", row.values[1] or "") >= least

    def _take_label(self, row: FileRow, path: Path) -> BadRow | None:
        if self.label is None:
            return None
        cell = row.values[-1] or ""
        try:
            value = self.rule.parse(cell)
        except UnmappedLabelError as error:
            return BadRow(str(path), row.line, str(self.label), cell, str(error))
        except WrongLabelError as error:
            raise TercetError(
                f"{path} {unit_of(path)} {row.line}: column `{self.label}` is "
                f"{shorten(cell)!r}, expected {error}."
            ) from error
        self.labels.append(value)
        return None

    def finish(self, files: Sequence[Path]) -> Examples:
        found = Examples(
            texts=self.texts,
            labels=self.rule.collect(self.labels) if self.labelled else None,
            lines=np.asarray(self.lines, np.int64),
            sources=np.repeat(np.arange(len(files), dtype=np.int32), self.counts),
            files=tuple(files),
            skipped=self.bad,
            remark=self.remark(),
        )
        return found if self.data.changes is None else _changed(found, self.data.changes)

    def remark(self) -> str:
        where, least = self.data.where, self.data.overlap
        remarks = []
        if where is not None:
            matches = " or ".join(where.matches)
            remarks.append(f"Only rows whose column `{where.column}` matches {matches}.")
        if least is not None:
            remarks.append(f"Only pairs that have {least:.0%} of their words in common.")
        if self.data.draw is not None and self.data.draw < len(self.lines):
            remarks.append(f"{self.data.draw:,} of {len(self.lines):,} rows, drawn at random.")
        return " ".join(remarks)


def _changed(sentences: Examples, spec: ChangesSpec) -> Examples:
    """Pairs of a sentence and itself changed by rule."""
    pairs = make_changed_pairs(sentences.texts[0], spec)
    chosen = sentences.take(pairs.rows)
    remark = f"{sentences.remark} {pairs.remark}".lstrip()
    return replace(chosen, texts=(*chosen.texts, pairs.changed), remark=remark)


def wanted(texts: Iterable[Column], label: Column | None) -> list[Column]:
    """The columns to read: texts, then the label if there is one."""
    return [*texts, *(() if label is None else (label,))]


def find_fault(
    row: FileRow, columns: Sequence[Column], *, path: Path, label: bool
) -> BadRow | None:
    """The fault of a row, if any: too many cells, no text, or no label (in the last column)."""
    if row.problem is not None:
        return BadRow(str(path), row.line, "", "", row.problem)
    if all(row.values):
        return None
    last = len(columns) - 1
    missing = [
        (str(column), "label" if label and index == last else "text")
        for index, (column, value) in enumerate(zip(columns, row.values, strict=True))
        if value is None
    ]
    reason = " and ".join(f"no {what} in column `{column}`" for column, what in missing)
    return BadRow(str(path), row.line, ", ".join(column for column, _ in missing), "", reason)


def describe_skipped(skipped: Sequence[BadRow]) -> str:
    """A sentence about skipped rows, with their lines; empty if there are none."""
    if not skipped:
        return ""
    shown = [f"{Path(bad.file).name} {bad.place} ({bad.reason})" for bad in skipped[:SHOWN]]
    more = f" and {len(skipped) - SHOWN:,} more" if len(skipped) > SHOWN else ""
    rows = "row" if len(skipped) == 1 else "rows"
    return f"Skipped {len(skipped):,} bad {rows}: {', '.join(shown)}{more}."


def _refusal(bad: Sequence[BadRow], *, total: int) -> str:
    first = bad[0]
    value = f" (value {shorten(first.value)!r})" if first.value else ""
    counted = f"{len(bad):,} of {total:,} rows {'is' if len(bad) == 1 else 'are'} bad"
    return (
        f"{first.file} {first.place}: {first.reason}{value}; {counted}; "
        'set `on_bad_row = "skip"` in the data of the task to skip bad rows.'
    )


def read_texts(
    path: Path, column: Sequence[Column] | None = None, *, width: int = 1
) -> tuple[list[str], ...]:
    """The texts of a file for prediction: `width` lists; see `TextRows`."""
    rows = TextRows.open(path, column, width=width).texts()
    return tuple(list(side) for side in zip(*rows, strict=True))
