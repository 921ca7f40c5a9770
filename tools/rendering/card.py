"""What the card of the shipped model says beyond what every card does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rendering.pages import fill
from tercet.files import read_json_object
from tercet.reproduce.table import markdown_table


def card(results: Path) -> str:
    """What the card of the shipped model says beyond what every card does."""
    document = read_json_object(results / "small.json")
    records = {name: record.get("rows", []) for name, record in document["records"].items()}
    seeds = [
        [name, f"{float(shipped):.3f}", _from_to([shipped, *others])]
        for name, shipped, *others, _, _ in records["seeds"]
    ]
    *_, ours, theirs = records["sts"][-1]
    errors = [f"{task} {error} ({mode})" for task, mode, error, _ in records["calibration"]]
    found = read_json_object(results / "contamination.json")
    seen = [
        f"{found['sets'][name]['seen']:,} of {found['sets'][name]['rows']:,} rows of {name}"
        for name in ("MR", "SUBJ", "MRPC, test", "STS-B")
    ]
    positives = found["quora-dev"]["label 1"]
    unseen = [
        f"{float(value):.3f} ({mode})"
        for task, mode, *_, value in records["unseen"]
        if task == "paraphrase"
    ]
    parts = {
        **document["values"],
        "seeds": "\n".join(markdown_table(["dev", "this seed", "all three"], seeds)),
        "sts": f"{ours} (all-MiniLM-L6-v2: {theirs})",
        "calibration": ", ".join(errors),
        "seen": "; ".join(seen),
        "implied": f"{positives['implied']:,} of {positives['rows']:,}",
        "unseen": " and ".join(unseen),
    }
    return fill("card.md", parts)


def _from_to(values: Sequence[str]) -> str:
    low, high = (f"{pick(map(float, values)):.3f}" for pick in (min, max))
    return low if low == high else f"{low} to {high}"
