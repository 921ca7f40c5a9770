"""Draw the charts of results/reproduction anew from the JSON files beside them.

python tools/draw_results.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tercet.reproduce.figure import draw
from tercet.reproduce.table import Measured, Row

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "reproduction"
sys.path.insert(0, str(ROOT / "studies"))


def read_rows(file: Path) -> list[Row]:
    """The rows of a table.json."""
    rows = []
    for fields in json.loads(file.read_text("utf-8"))["rows"]:
        measured = {task: Measured(**result) for task, result in fields["measured"].items()}
        rows.append(Row(**{**fields, "measured": measured}))
    return rows


def main() -> None:
    import forgetting

    for table in sorted(RESULTS.rglob("table.json")):
        draw(read_rows(table), table.with_name("figure.svg"))
    document = json.loads((RESULTS / "forgetting.json").read_text("utf-8"))
    chart = forgetting.draw(document["scores"], steps=document["steps"])
    (RESULTS / "forgetting.svg").write_text(chart, "utf-8")


if __name__ == "__main__":
    main()
