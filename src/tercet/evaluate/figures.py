"""Figures as inline SVG that takes its colours from the page, each with a text alternative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Point = tuple[float, float]
WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 12.0, 12.0, 40.0
MAP_WIDTH, MAP_HEIGHT = 760.0, 480.0
COLOURS = 6
SPARSE = 300
DOT = 3.2


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a chart; names replace the numbers of ticks where they are given."""

    label: str
    low: float
    high: float
    names: Sequence[str] | None = None

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(value, text)"""
        if self.names is not None:
            return [(float(place), name) for place, name in enumerate(self.names)]
        return [(value, f"{value:g}") for value in nice_ticks(self.low, self.high)]


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together.

    whiskers: lowest and highest of each point, where it has an interval
    weights: how much of the whole each point stands for, told by the size of its dot
    """

    name: str
    points: Sequence[Point]
    kind: Literal["line", "dots", "cloud"] = "line"
    whiskers: Sequence[Point | None] = ()
    weights: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A series in the chart's own units.

    dots: across, down and radius of each
    sparse: whether its dots are few enough to be drawn large
    """

    name: str
    kind: str
    colour: int
    path: str
    dots: list[tuple[float, float, float]]
    whiskers: list[tuple[float, float, float]]
    sparse: bool
    weighted: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """Series over two axes.

    alternative: what the chart shows, in words
    note: how to read it, where its title does not tell
    diagonal: whether to draw the line on which both sides are equal
    marks: vertical lines with a word at their head
    """

    title: str
    alternative: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    note: str = ""
    diagonal: bool = False
    marks: Sequence[tuple[float, str]] = field(default_factory=list)
    template = "chart.svg.jinja"

    def across(self, value: float) -> float:
        share = (value - self.x.low) / ((self.x.high - self.x.low) or 1.0)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def down(self, value: float) -> float:
        share = (value - self.y.low) / ((self.y.high - self.y.low) or 1.0)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    @property
    def frame(self) -> dict[str, float]:
        return {
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "top": TOP,
            "bottom": HEIGHT - BOTTOM,
        }

    @property
    def empty(self) -> bool:
        return not any(series.points for series in self.series)

    @property
    def drawn(self) -> list[Drawn]:
        return [self._draw(series, number) for number, series in enumerate(self.series)]

    def _draw(self, series: Series, number: int) -> Drawn:
        places = [(self.across(x), self.down(y)) for x, y in series.points]
        whiskers = [
            (place[0], self.down(whisker[0]), self.down(whisker[1]))
            for place, whisker in zip(places, series.whiskers, strict=False)
            if whisker is not None
        ]
        path = _cloud(places) if series.kind == "cloud" else _line(places)
        sizes = [_radius(weight) for weight in series.weights] or [DOT] * len(places)
        dots = [(x, y, size) for (x, y), size in zip(places, sizes, strict=True)]
        return Drawn(
            name=series.name,
            kind=series.kind,
            colour=number % COLOURS,
            path=path,
            dots=dots if series.kind == "dots" else [],
            whiskers=whiskers,
            sparse=len(places) <= SPARSE,
            weighted=bool(series.weights),
        )


def _radius(weight: float) -> float:
    """Of a dot whose area grows with what it stands for, and that is always seen."""
    return round(1.8 + 9.0 * math.sqrt(weight), 1)


def _line(places: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places) if places else ""


def _cloud(places: Sequence[Point]) -> str:
    """Strokes of no length, whose round ends are the dots: a few bytes each."""
    return "".join(f"M{x:g} {y:g}h0" for x, y in places)


@dataclass(frozen=True, slots=True)
class MapPoint:
    x: float
    y: float
    text: str
    colour: int


@dataclass(frozen=True, slots=True)
class SentenceMap:
    """Sentences on a plane.

    points: in the map's own units, ordered so that a walk through them makes short steps
    groups: names of the colours
    note: how to read it
    """

    title: str
    alternative: str
    points: Sequence[MapPoint]
    groups: Sequence[str]
    note: str
    template = "map.html.jinja"

    @property
    def frame(self) -> dict[str, float]:
        return {"width": MAP_WIDTH, "height": MAP_HEIGHT}


def sentence_map(
    title: str,
    places: Sequence[Point],
    texts: Sequence[str],
    *,
    kinds: Sequence[str],
    alternative: str,
    note: str,
) -> SentenceMap:
    """places, texts and the kind of each: n of each"""
    groups = list(dict.fromkeys(kinds))
    across = _fit([x for x, _ in places], MAP_WIDTH)
    down = _fit([-y for _, y in places], MAP_HEIGHT)
    colours = [groups.index(kind) % COLOURS for kind in kinds]
    points = [MapPoint(*each) for each in zip(across, down, texts, colours, strict=True)]
    points.sort(key=lambda point: (point.colour, point.x))
    return SentenceMap(title, alternative, points, groups, note)


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


def padded(values: Sequence[float], *, least: float = 1e-6) -> tuple[float, float]:
    """Bounds of an axis that leave a little room around the values, `least` apart."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max((high - low) * 0.06, (least - (high - low)) / 2.0)
    return low - room, high + room
