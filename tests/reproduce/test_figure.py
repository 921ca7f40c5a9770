from __future__ import annotations

from pathlib import Path

from tercet.reproduce.figure import draw
from tercet.reproduce.table import ExperimentRow, Measured


def row(name: str, **fields) -> ExperimentRow:
    values = {"report": None, "summary": "", "published": {}, "measured": {}, "kept": "best"}
    others = {"published_train": {}, "published_test": {}, "measured_train": {}, "commits": []}
    return ExperimentRow(name=name, remarks=[], failures=[], **(values | others | fields))


def test_every_recipe_is_a_line_with_its_published_and_measured_values(tmp_path: Path) -> None:
    measured = Measured("accuracy", [0.5], 0.5, (0.45, 0.55))
    rows = [
        row("a/one", published={"sentiment": 0.52}, measured={"sentiment": measured}),
        row("b/failed"),
    ]
    draw(rows, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text("utf-8")
    assert text.count(">a/one<") == text.count(">b/failed<") == 1
    assert text.count('whisker" d=') == 1
    assert text.count("<circle") == 2 + 2  # both values, and the legend
