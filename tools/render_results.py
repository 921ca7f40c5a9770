"""Render the pages of results/ from the JSON files and run records beside them: `make results`.

python tools/render_results.py [RESULTS]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tercet.files import write_text
from tercet.reproduce.facts import facts_of
from tercet.reproduce.figure import draw
from tercet.reproduce.methods import methods_page
from tercet.reproduce.runs import with_earlier
from tercet.reproduce.table import build_rows, write_table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "studies"))


def render(results: Path) -> None:
    """Write all pages and charts that are made of records."""
    reproduction = results / "reproduction"
    for runs in sorted(reproduction.rglob("runs")):
        if runs.parent.name != "older":
            render_table(runs.parent)
    render_forgetting(reproduction)
    write_text(reproduction / "methods.md", methods_page())


def render_table(folder: Path) -> None:
    """table.md, table.json and figure.svg of an encoder's runs."""
    outcomes = with_earlier([], folder)
    rows = build_rows(outcomes, folder)
    write_table(rows, folder, facts=facts_of(outcomes, folder))
    draw(rows, folder / "figure.svg")


def render_forgetting(folder: Path) -> None:
    import forgetting  # in studies/

    document = json.loads((folder / "forgetting.json").read_text("utf-8"))
    chart = forgetting.draw(document["scores"], steps=document["steps"])
    write_text(folder / "forgetting.svg", chart)


if __name__ == "__main__":
    render(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results")
