from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tercet.evaluation.presentation import Axis, Chart, Series
from tercet.report.svg import Frame, Plot, nice_ticks, to_svg


def chart(**fields) -> Chart:
    series = [
        Series("measured & more", [(1.0, 0.0)], kind="dots", whiskers=[(0.5, 1.5)]),
        Series("published", [(2.0, 1.0)], kind="rings"),
    ]
    names = ["first", "second"]
    return Chart("title", "words", Axis("", 0.0, 2.0), Axis("", 1.5, -0.5, names), series, **fields)


def test_whiskers_follow_their_axis() -> None:
    frame = Frame(width=100, height=100, left=0, right=0, top=0, bottom=0)
    across = Plot(chart(whiskers="x"), frame).series[0]
    assert across.dots == [(50.0, 25.0, 3.2)]
    assert across.whiskers == ["M25.0 25.0H75.0"]
    assert across.path == ""
    down = Plot(chart(), frame).series[0]
    assert down.whiskers[0].startswith("M50.0 ")


def test_labels_of_marks_stay_within_the_chart_and_apart() -> None:
    frame = Frame(width=200, height=100, left=0, right=0, top=0, bottom=0)
    marks = [(0.0, "first heads"), (0.05, "tune"), (1.98, "heads")]
    plotted = Plot(chart(marks=marks), frame).marks
    assert plotted == [(0.0, "", False), (5.0, "tune", False), (198.0, "heads", True)]


def test_a_file_holds_all_panels_and_one_legend() -> None:
    text = to_svg([chart(), chart()], title="<two>", frames=[Frame(left=120), Frame(width=200)])
    tree = ET.fromstring(text)
    words = ["".join(node.itertext()) for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("first") == 2
    assert words.count("measured & more") == 1
    assert "<two>" in words
    assert tree.get("width") == "632.0"
    assert to_svg([chart()], title="a", frames=[Frame()]) == to_svg(
        [chart()], title="a", frames=[Frame()]
    )


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (3.0, 3.0, [3.0]), (-1.0, 12.0, [0, 5, 10])],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks
