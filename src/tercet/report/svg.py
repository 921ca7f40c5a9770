"""Charts as SVG: inline, with the colours of the page, or as a file with several panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tercet.evaluation.presentation import Axis, Chart, MapPoint, Point, SentenceMap, Series
from tercet.report.templating import environment, source

COLOURS = 6
SPARSE = 300
"""A cloud of at most so many points has larger dots."""
DOT = 3.2
NAME_WIDTH, MOST_NAMES = 6.0, 190.0
"""Of a letter of a line's name, and of all names at most."""
LINE_HEIGHT = 40.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a chart, and the place of its axes within."""

    width: float = 420.0
    height: float = 280.0
    left: float = 54.0
    right: float = 12.0
    top: float = 12.0
    bottom: float = 40.0


@dataclass(frozen=True, slots=True)
class PlottedSeries:
    """A series in the units of the frame.

    dots: x, y and radius of each
    whiskers: paths
    sparse: whether its dots are few enough to be large
    """

    kind: str
    colour: int
    path: str
    dots: list[tuple[float, float, float]]
    whiskers: list[str]
    sparse: bool
    weighted: bool


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart within a frame."""

    chart: Chart
    frame: Frame = Frame()
    template: ClassVar[str] = "chart.html.jinja"

    def across(self, value: float) -> float:
        frame, axis = self.frame, self.chart.x
        share = (value - axis.low) / ((axis.high - axis.low) or 1.0)
        return round(frame.left + share * (frame.width - frame.left - frame.right), 1)

    def down(self, value: float) -> float:
        frame, axis = self.frame, self.chart.y
        share = (value - axis.low) / ((axis.high - axis.low) or 1.0)
        inner = frame.height - frame.top - frame.bottom
        return round(frame.height - frame.bottom - share * inner, 1)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        return [(self.across(value), text) for value, text in _ticks(self.chart.x)]

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        return [(self.down(value), text) for value, text in _ticks(self.chart.y)]

    @property
    def marks(self) -> list[tuple[float, str, bool]]:
        """Each vertical line with its label and whether that is left of it; the label is empty
        where it would cover that of the next line."""
        placed: list[tuple[float, str, bool]] = []
        room = self.frame.width - self.frame.right
        for value, text in reversed(self.chart.marks):
            x, width = self.across(value), NAME_WIDTH * len(text)
            leftwards = x + width > self.frame.width - self.frame.right
            begin = x - width if leftwards else x
            fits = begin + width <= room
            placed.append((x, text if fits else "", leftwards))
            room = begin if fits else room
        return placed[::-1]

    @property
    def empty(self) -> bool:
        return not any(series.points for series in self.chart.series)

    @property
    def legend(self) -> list[str]:
        """The names of the series; a single name is shown only if it says more than the title."""
        names = [series.name for series in self.chart.series]
        return names if len(names) > 1 or any("," in name for name in names) else []

    @property
    def dotted(self) -> bool:
        """Whether its series are dots without lines."""
        return all(series.kind in ("dots", "rings") for series in self.chart.series)

    @property
    def series(self) -> list[PlottedSeries]:
        return [self._plot(series, place) for place, series in enumerate(self.chart.series)]

    def _plot(self, series: Series, place: int) -> PlottedSeries:
        points = [(self.across(x), self.down(y)) for x, y in series.points]
        paths = {"line": _line, "marked": _line, "cloud": _cloud}
        sizes = [_radius(weight) for weight in series.weights] or [DOT] * len(points)
        dots = [(x, y, size) for (x, y), size in zip(points, sizes, strict=True)]
        return PlottedSeries(
            kind=series.kind,
            colour=place % COLOURS,
            path=paths[series.kind](points) if series.kind in paths else "",
            dots=[] if series.kind in ("line", "cloud") else dots,
            whiskers=[
                self._whisker(point, *bounds)
                for point, bounds in zip(points, series.whiskers, strict=False)
                if bounds is not None
            ],
            sparse=len(points) <= SPARSE,
            weighted=bool(series.weights),
        )

    def _whisker(self, point: Point, low: float, high: float) -> str:
        if self.chart.whiskers == "x":
            return f"M{self.across(low)} {point[1]}H{self.across(high)}"
        return f"M{point[0]} {self.down(low)}V{self.down(high)}"


@dataclass(frozen=True, slots=True)
class PlottedMap:
    """A map of sentences within a frame; neighbours follow each other."""

    chart: SentenceMap
    frame: Frame = Frame(width=760.0, height=480.0)
    template: ClassVar[str] = "map.html.jinja"

    @property
    def legend(self) -> list[str]:
        return self.chart.groups if len(self.chart.groups) > 1 else []

    @property
    def points(self) -> list[tuple[MapPoint, float, float, int]]:
        """Each point with x, y and colour."""
        points, groups = self.chart.points, self.chart.groups
        across = _fit([point.x for point in points], self.frame.width)
        down = _fit([-point.y for point in points], self.frame.height)
        colours = [groups.index(point.group) % COLOURS for point in points]
        placed = zip(points, across, down, colours, strict=True)
        return sorted(placed, key=lambda point: (point[3], point[1]))


def plot(chart: Chart | SentenceMap) -> Plot | PlottedMap:
    return Plot(chart, _frame(chart)) if isinstance(chart, Chart) else PlottedMap(chart)


def _frame(chart: Chart) -> Frame:
    """The usual frame; where lines have names, with room for these and as high as needed."""
    if chart.y.names is None:
        return Frame()
    longest = max(map(len, chart.y.names), default=0)
    left = min(max(20.0 + NAME_WIDTH * longest, 54.0), MOST_NAMES)
    return Frame(left=left, height=max(120.0, 60.0 + LINE_HEIGHT * len(chart.y.names)))


def to_svg(charts: Sequence[Chart], *, title: str, frames: Sequence[Frame]) -> str:
    """An SVG file of charts side by side; they share the legend of the first."""
    plots = [Plot(chart, frame) for chart, frame in zip(charts, frames, strict=True)]
    starts = [sum(frame.width for frame in frames[:place]) for place in range(len(frames))]
    template = environment().get_template("panels.svg.jinja")
    return template.render(
        title=title,
        panels=list(zip(plots, starts, strict=True)),
        width=sum(frame.width for frame in frames) + frames[-1].right,
        height=max(frame.height for frame in frames),
        style=source("palette.css") + source("chart.css"),
    )


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """(value, text)"""
    if axis.names is not None:
        return [(float(place), name) for place, name in enumerate(axis.names)]
    return [(value, f"{value:g}") for value in nice_ticks(axis.low, axis.high)]


def _radius(weight: float) -> float:
    """The radius of a dot whose area grows with its weight and that is always visible."""
    return round(1.8 + 9.0 * math.sqrt(weight), 1)


def _line(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if points else ""


def _cloud(points: Sequence[Point]) -> str:
    """Strokes of no length, whose round ends are the dots: a few bytes each."""
    return "".join(f"M{x:g} {y:g}h0" for x, y in points)


def _fit(values: Sequence[float], size: float, margin: float = 14.0) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    scale = (size - 2 * margin) / ((high - low) or 1.0)
    return [round(margin + (value - low) * scale, 1) for value in values]


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within the bounds, by steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not span > 0.0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]
