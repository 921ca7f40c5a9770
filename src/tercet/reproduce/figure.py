"""A chart of published against measured metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tercet.evaluation.metrics import Bounds
from tercet.evaluation.presentation import Axis, Chart, Series, padded
from tercet.files import write_text
from tercet.report.svg import Frame, to_svg
from tercet.reproduce.table import TASKS, ExperimentRow

_ROW_HEIGHT = 16.0
_NAMES_WIDTH = 240.0
"""Of the recipes' names, left of the first panel."""
_PANEL_WIDTH = 260.0


def draw(rows: Sequence[ExperimentRow], file: Path) -> None:
    """One panel per task, one line per recipe: rings are published, dots measured."""
    charts = [_panel(rows, task, title) for task, title in TASKS.items()]
    height = 36.0 + _ROW_HEIGHT * len(rows)
    lefts = [_NAMES_WIDTH, *[12.0] * (len(charts) - 1)]
    frames = [
        Frame(width=left + _PANEL_WIDTH, height=height, left=left, bottom=24.0) for left in lefts
    ]
    title = "On dev: rings are published, dots are measured, with 95 % intervals"
    write_text(file, to_svg(charts, title=title, frames=frames))


def _panel(rows: Sequence[ExperimentRow], task: str, title: str) -> Chart:
    published = [
        (row.published[task], float(place))
        for place, row in enumerate(rows)
        if task in row.published
    ]
    measured = [
        (row.measured[task], float(place)) for place, row in enumerate(rows) if task in row.measured
    ]
    intervals: list[Bounds | None] = [result.interval for result, _ in measured]
    values = [value for value, _ in published] + [result.mean for result, _ in measured]
    bounds = [bound for pair in intervals if pair is not None for bound in pair]
    first = task == next(iter(TASKS))
    return Chart(
        title=title,
        alternative=f"Published and measured metrics of {title}.",
        x=Axis("", *padded([*values, *bounds])),
        # The first recipe is at the top.
        y=Axis("", len(rows) - 0.5, -0.5, [row.name if first else "" for row in rows]),
        series=[
            Series(
                "measured",
                [(result.mean, place) for result, place in measured],
                kind="dots",
                whiskers=intervals,
            ),
            Series("published", published, kind="rings"),
        ],
        whiskers="x",
    )
