"""Published figures against measured ones, as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tercet.reproduce.table import TASKS, Row

_INCHES_A_ROW = 0.22


def draw(rows: Sequence[Row], file: Path) -> None:
    """One panel a task, one line a recipe: rings are published, dots measured, with intervals."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 1.5 + _INCHES_A_ROW * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(TASKS), sharey=True)
    for panel, (task, title) in zip(panels, TASKS.items(), strict=True):
        panel.set_title(title)
        panel.grid(axis="x", alpha=0.3)
        for place, row in enumerate(rows):
            if task in row.published:
                panel.plot(row.published[task], place, "o", mfc="none", color="tab:gray")
            if (found := row.measured.get(task)) is not None:
                panel.plot(found.mean, place, "o", color="tab:blue", markersize=4)
                if found.interval is not None:
                    panel.hlines(place, *found.interval, color="tab:blue")
    panels[0].set_yticks(range(len(rows)), [row.name for row in rows], fontsize=7)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)  # the first on top
    figure.suptitle("On dev: rings are published, dots are measured")
    # The same rows make the same file: otherwise its ids are drawn anew and it holds the time.
    with rc_context({"svg.hashsalt": "tercet"}):
        figure.savefig(file, metadata={"Date": None})
