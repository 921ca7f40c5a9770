"""How figures were made: what a table must say to be honest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from tercet.reproduce.runs import Outcome


def facts_of(
    outcomes: Sequence[Outcome], out: Path, *, encoder: str | None, changes: Sequence[str]
) -> dict[str, str]:
    """Encoder, changes, versions and machines of all experiments that are done, each in words."""
    made = _made_with(outcomes, out)
    return {
        "encoder": encoder or "as each recipe names it",
        # Runs of early versions do not say which weights they began with.
        "weights at the start": _distinct(one.get("weights", "not recorded") for one in made),
        "changes": ", ".join(changes) or "none",
        "made with": _distinct(
            f"{one['machine']} (tercet {one['tercet']}, torch {one['torch']})" for one in made
        ),
        "intervals": "95 %, over seeds where there are several (Student's t), else over dev rows",
        "data": "NLI and Quora differ in size from the reports'; see each recipe's header",
    }


def _made_with(outcomes: Sequence[Outcome], out: Path) -> list[dict[str, str]]:
    """What every experiment that is done says that it was made with."""
    done = [outcome.experiment.folder(out) for outcome in outcomes if outcome.reason is None]
    return [json.loads((run / "summary.json").read_text("utf-8"))["made_with"] for run in done]


def _distinct(words: Iterable[str]) -> str:
    return "; ".join(sorted(set(words))) or "nothing yet"
