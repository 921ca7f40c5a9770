"""Texts of a file to predict, row by row, and their labels if they have any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tercet.data.delimited import Reading
from tercet.data.files import find_file, unit_of
from tercet.data.guess import guess_columns
from tercet.data.labels import (
    NO_LABELS,
    LabelRule,
    Labels,
    UnmappedLabelError,
    WrongLabelError,
)
from tercet.data.readers import read_rows
from tercet.errors import ArgumentError, TercetError, shorten
from tercet.specs import Column


@dataclass(frozen=True, slots=True)
class TextRows:
    """The texts of a file for prediction, and its labels if their column is given."""

    path: Path
    columns: tuple[Column, ...]
    label: Column | None
    reading: Reading

    @classmethod
    def open(
        cls,
        path: Path,
        column: Sequence[Column] | None = None,
        label: Column | None = None,
        *,
        width: int = 1,
    ) -> TextRows:
        """column: the text columns, by default detected from the header; plain text has only one
        width: how many there must be
        """
        path = find_file(path)
        chosen = guess_columns(path, texts=column or None, label=label)
        if len(chosen.texts) != width:
            named = ", ".join(f"`{column}`" for column in chosen.texts)
            raise ArgumentError(
                f"{path}: {width} text column{'s' * (width > 1)} needed, not {len(chosen.texts)} "
                f"({named}); select {'them' if width > 1 else 'it'} with `column`.",
                "column",
            )
        return cls(path, chosen.texts, label, chosen.reading)

    def texts(self) -> Iterator[tuple[str, ...]]:
        """The texts of each row; a missing text is empty."""
        for row in read_rows(self.path, self.columns, self.reading):
            if row.problem is not None:
                raise TercetError(f"{self.path} {unit_of(self.path)} {row.line}: {row.problem}.")
            yield tuple(value or "" for value in row.values)

    def labels(self, rule: LabelRule) -> Labels:
        """The labels of all rows [n], or [n, classes] where rows may have several; one that the
        rule does not know is an error."""
        assert self.label is not None
        values = []
        lists = [self.label] if rule.several else []
        for row in read_rows(self.path, [self.label], self.reading, lists=lists):
            place = f"{self.path} {unit_of(self.path)} {row.line}: column `{self.label}`"
            cell = row.values[0] or (NO_LABELS if rule.several else None)
            if cell is None:
                raise TercetError(f"{place} holds no label, expected {rule.expected}.")
            try:
                values.append(rule.parse(cell))
            except (UnmappedLabelError, WrongLabelError) as error:
                raise TercetError(
                    f"{place} is {shorten(cell)!r}, expected {rule.expected}."
                ) from error
        return rule.collect(values)
