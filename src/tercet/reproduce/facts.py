"""How figures were made: what a table must say to be honest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tercet.reproduce.runs import Outcome


def facts_of(
    outcomes: Sequence[Outcome], out: Path, *, encoder: str | None, changes: Sequence[str]
) -> dict[str, str]:
    """Encoder, changes, versions and machines of all experiments that are done, each in words."""
    return {
        "encoder": encoder or "as each recipe names it",
        "changes": ", ".join(changes) or "none",
        "made with": "; ".join(_made_with(outcomes, out)) or "nothing yet",
        "intervals": "95 %, over seeds where there are several (Student's t), else over dev rows",
        "data": "NLI and Quora differ in size from the reports'; see each recipe's header",
    }


def _made_with(outcomes: Sequence[Outcome], out: Path) -> list[str]:
    """Every machine, with its versions, that an experiment ran on."""
    found = set()
    for outcome in outcomes:
        if outcome.reason is None:
            summary = outcome.experiment.folder(out) / "summary.json"
            made = json.loads(summary.read_text("utf-8"))["made_with"]
            found.add(f"{made['machine']} (tercet {made['tercet']}, torch {made['torch']})")
    return sorted(found)
