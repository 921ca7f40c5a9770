"""What is shown of a measurement: tables, charts, headlines and findings, without a format.

A suite makes these values; `tercet.report` renders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tercet.errors import shorten
from tercet.evaluation.metrics import Bounds, Estimate

T = TypeVar("T")
Point = tuple[float, float]
INTERVAL = "95 % interval"
SHOWN = 600
"""Characters of a text; a report of long documents would be too large."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    sort: the number to sort by, where the text does not sort
    mark: `right` or `wrong`, for a prediction
    full: the text with all its digits, for programs; default: the text
    """

    text: str
    sort: float | None = None
    mark: Literal["", "right", "wrong"] = ""
    full: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; the first column names the row.

    filters: the columns to choose rows by; only tables of sentences have them
    """

    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    filters: list[str] = field(default_factory=list)

    @property
    def numeric(self) -> set[str]:
        """The columns of numbers."""
        return {
            name
            for place, name in enumerate(self.columns)
            if place and any(row[place].sort is not None for row in self.rows)
        }

    def values(self, column: str) -> list[str]:
        """The different texts of a column, in order of appearance."""
        place = self.columns.index(column)
        return list(dict.fromkeys(row[place].text for row in self.rows))


@dataclass(frozen=True, slots=True)
class Headline:
    """The main metric of a task or a suite."""

    subject: str
    metric: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a chart; `names` replace the numbers of its ticks."""

    label: str
    low: float
    high: float
    names: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together.

    kind: `marked` is a line with dots, `cloud` many small dots
    whiskers: the lowest and highest value of each point, where it has an interval
    weights: the share of the whole that each point represents, shown by the size of its dot
    """

    name: str
    points: Sequence[Point]
    kind: Literal["line", "marked", "dots", "rings", "cloud"] = "line"
    whiskers: Sequence[Bounds | None] = ()
    weights: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over two axes.

    alternative: what the chart shows, in words
    note: how to read it
    diagonal: whether to draw the line on which both axes are equal
    marks: vertical lines with a label
    whiskers: the axis that whiskers are parallel to
    """

    title: str
    alternative: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    note: str = ""
    diagonal: bool = False
    marks: Sequence[tuple[float, str]] = ()
    whiskers: Literal["x", "y"] = "y"


@dataclass(frozen=True, slots=True)
class MapPoint:
    x: float
    y: float
    text: str
    group: str


@dataclass(frozen=True, slots=True)
class SentenceMap:
    """Sentences on a plane, coloured by group."""

    title: str
    alternative: str
    points: Sequence[MapPoint]
    note: str = ""

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(point.group for point in self.points))


@dataclass(frozen=True, slots=True)
class ConfusionMatrix:
    """counts: rows by expected and predicted class [classes, classes]"""

    caption: str
    classes: Sequence[str]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report under its own heading."""

    title: str
    intro: str = ""
    matrices: Sequence[ConfusionMatrix] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart | SentenceMap] = ()
    parts: Sequence[Section] = ()

    @property
    def empty(self) -> bool:
        return not (self.matrices or self.tables or self.charts or self.parts)


def decimal(value: float | None, digits: int = 3) -> str:
    return "undefined" if value is None else f"{value:.{digits}f}"


def number(value: float | None, digits: int = 3) -> Cell:
    return Cell(decimal(value, digits), value, full=decimal(value, 4))


def share(value: float | None) -> Cell:
    text = "undefined" if value is None else f"{value:.0%}"
    return Cell(text, value, full=decimal(value, 4))


def count(value: int) -> Cell:
    return Cell(f"{value:,}", value, full=str(value))


def interval_cell(bounds: Bounds | None) -> Cell:
    if bounds is None:
        return Cell("")
    low, high = bounds
    return Cell(f"{low:.3f} to {high:.3f}", full=f"{low:.4f} to {high:.4f}")


def estimate_cells(estimate: Estimate) -> list[Cell]:
    """The value and its interval."""
    return [number(estimate.value), interval_cell(estimate.interval)]


def sentence_cell(texts: Sequence[str]) -> Cell:
    """The texts of a row, one per line, the long ones shortened."""
    return Cell("\n".join(shorten(text, SHOWN) for text in texts))


def enumeration(names: Sequence[str]) -> str:
    """a, b and c"""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def interleave(groups: Iterable[Iterable[T]]) -> list[T]:
    """The first item of every group, then the second of every group, and so on."""
    return [item for rank in zip_longest(*groups) for item in rank if item is not None]


def padded(values: Sequence[float], *, least: float = 1e-6) -> tuple[float, float]:
    """Bounds of an axis with a margin around the values, at least `least` apart."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = max((high - low) * 0.06, (least - (high - low)) / 2.0)
    return low - margin, high + margin


def spread(total: int, most: int | None) -> NDArray[np.int64]:
    """At most `most` places, spread evenly over `total`, ends included."""
    chosen = total if most is None else min(total, most)
    return np.linspace(0, total - 1, chosen).round().astype(np.int64)
