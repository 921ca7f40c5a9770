"""Write what the fuzz room, the chaos run and the comparison of throughput left to results/.

    TERCET_FUZZ_RECORD=fuzz.jsonl TERCET_FUZZ=2500 TERCET_FUZZ_SEED=1 python -m pytest tests/fuzz
    python benchmarks/chaos.py --json chaos.json
    python benchmarks/serve.py compare --against CHECKOUT --json throughput.json
    python tools/record_hardening.py --fuzz fuzz.jsonl --chaos chaos.json --commit COMMIT

Each option replaces its records in results/hardening.json; the others stay.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tercet.files import read_json_object, write_json

ROOT = Path(__file__).resolve().parents[1]
HARDENING = ROOT / "results" / "hardening.json"
APART = ("minutes", "attacks", "made with")
"""Figures of the chaos run that its table does not show."""

Record = dict[str, Any]


def fuzz_record(lines: Sequence[Mapping[str, Any]]) -> Record:
    """What the cases of each target gave, over all seeds."""
    rows = []
    for target in dict.fromkeys(line["target"] for line in lines):
        found = [line for line in lines if line["target"] == target]
        counts: Counter[str] = sum((Counter(line["outcomes"]) for line in found), Counter())
        faults = sum(line["faults"] for line in found)
        answered = counts["0"] + counts["200"]
        slowest = max(line["slowest"] for line in found)
        peak = max(line["peak"] for line in found) / 2**20
        refused = counts.total() - answered - faults
        cells = (f"{number:,}" for number in (counts.total(), answered, refused, faults))
        rows.append([target, *cells, f"{slowest:.1f}", f"{peak:,.0f}"])
    cases = sum(sum(line["outcomes"].values()) for line in lines)
    return {
        "columns": [
            "target", "cases", "answered", "refused", "faults", "slowest, s", "peak memory, MB",
        ],
        "rows": rows,
        "seeds": sorted({line["seed"] for line in lines}),
        "values": {"cases": f"{cases:,}", "faults": sum(line["faults"] for line in lines)},
        "encoder": "a BERT of 2 layers, 32 wide, with random weights and three heads",
    }  # fmt: skip


def chaos_records(found: Mapping[str, Any], name: str) -> dict[str, Record]:
    """The figures of the run under a name, and the answers to each attack."""
    figures = {name: value for name, value in found.items() if name not in APART}
    statuses = figures.pop("honest statuses")
    figures |= {f"honest requests answered with {status}": n for status, n in statuses.items()}
    rows = [[figure, f"{value:,}"] for figure, value in sorted(figures.items())]
    chaos = {
        "columns": ["figure", "value"],
        "rows": rows,
        "minutes": found["minutes"],
        **found["made with"],
    }
    attacks = [[kind, f"{count:,}"] for kind, count in found["attacks"].items()]
    answers = {"columns": ["attack: answer", "times"], "rows": attacks}
    return {name: chaos, f"{name}-attacks": answers}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("fuzz", "chaos", "throughput"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--fuzz-name", default="fuzz", help="of the record of the fuzz room")
    parser.add_argument("--chaos-name", default="chaos", help="of the record of the chaos run")
    parser.add_argument("--commit", required=True, help="of the checkout that was measured")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from records import cpu

    document = read_json_object(HARDENING) if HARDENING.is_file() else {"records": {}}
    records: dict[str, Record] = document["records"]
    if arguments.fuzz is not None:
        lines = arguments.fuzz.read_text("utf-8").splitlines()
        records[arguments.fuzz_name] = fuzz_record([json.loads(line) for line in lines])
    if arguments.chaos is not None:
        records |= chaos_records(read_json_object(arguments.chaos), arguments.chaos_name)
    if arguments.throughput is not None:
        records["throughput"] = read_json_object(arguments.throughput)
    names = {"fuzz": arguments.fuzz_name, "chaos": arguments.chaos_name, "throughput": "throughput"}
    for option, name in names.items():
        if getattr(arguments, option) is not None:
            records[name] |= {"commit": arguments.commit, "machine": cpu()}
    write_json(HARDENING, document)


if __name__ == "__main__":
    main()
