"""Render the pages of results/ from the JSON files and run records beside them: `make results`.

python tools/render_results.py [RESULTS]

A page NAME is results/NAME.json and the template tools/pages/NAME.md; it is found by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

from rendering.long_texts import encoders_parts, long_parts, memory_chart
from rendering.pages import Parts, page_names, render_page
from rendering.reproduction import render_reproduction

from tercet.files import read_json_object, write_text
from tercet.reproduce.table import markdown_table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))


def render(results: Path) -> None:
    """Write all pages and charts that are made of records."""
    render_reproduction(results / "reproduction")
    for name in page_names(results):
        render_page(results, name, MORE[name](results) if name in MORE else None)
    render_fit(results)


def base_parts(results: Path) -> Parts:
    """The dev scores of every seed of tercet/base, from its runs."""
    folder = results / "reproduction" / "all-mpnet-base-v2" / "runs" / "tercet" / "base"
    files = sorted(folder.glob("*/summary.json"))
    runs = [read_json_object(file) for file in files]
    lines = []
    document = read_json_object(results / "base.json")
    for name, target in document["targets"].items():
        task, mode, metric = name.split(", ")
        scores = [run["dev"][task][mode][metric] for run in runs]
        lines.append([name, *(f"{score:.4f}" for score in scores), f"{target:.3f}"])
    means = [fmean(float(line[place]) for line in lines[:3]) for place in range(1, len(runs) + 1)]
    lines.append(
        [
            "mean of the first three",
            *(f"{mean:.4f}" for mean in means),
            document["values"]["mean target"],
        ]
    )
    seeds = [file.parent.name.removeprefix("seed-") for file in files]
    commits = ", ".join(sorted({run["made_with"]["commit"] for run in runs}))
    table = [*markdown_table(["dev", *seeds, "target"], lines), "", f"Commit {commits}."]
    return {"seeds": "\n".join(table)}


def long_text_parts(results: Path) -> Parts:
    """Tables of long texts; their chart is a file of its own."""
    document = read_json_object(results / "long.json")
    write_text(results / "long-memory.svg", memory_chart(document))
    return long_parts(document)


def contamination_parts(results: Path) -> Parts:
    """Tables of counts by evaluation set."""
    document = read_json_object(results / "contamination.json")
    sets = [
        [name, f"{found['seen']:,}", f"{found['rows']:,}", f"{found['seen'] / found['rows']:.1%}"]
        for name, found in document["sets"].items()
    ]
    quora = document["quora-dev"]
    kinds = [kind for kind in next(iter(quora.values())) if kind != "rows"]
    pairs = [
        [label, f"{found['rows']:,}", *(f"{found[kind]:,}" for kind in kinds)]
        for label, found in quora.items()
    ]
    return {
        **document["made_with"],
        "sets": "\n".join(markdown_table(["set", "seen", "rows", "share"], sets)),
        "quora": "\n".join(markdown_table(["pairs", "rows", *kinds], pairs)),
    }


def second_round_parts(results: Path) -> Parts:
    """What the model that ships scores without rows that it has seen, from its own records."""
    small = read_json_object(results / "small.json")["records"]
    unseen = {(task, mode): row[-1] for task, mode, *row in small["unseen"]["rows"]}
    return {
        "small, cross": _three(unseen["paraphrase", "cross"]),
        "small, bi": _three(unseen["paraphrase", "bi"]),
        "small, STS": {row[0]: row[2] for row in small["sts"]["rows"]}["average"],
    }


def hardening_parts(results: Path) -> Parts:
    """Single figures of the chaos run, from its table."""
    chaos = read_json_object(results / "hardening.json")["records"]["chaos"]
    return {f"chaos, {figure}": value for figure, value in chaos["rows"]}


def _three(score: str) -> str:
    return f"{float(score):.3f}"


def render_fit(results: Path) -> None:
    """The page of the benchmark of `fit`, which renders its own jobs."""
    from fit_peers.table import render as page

    write_text(results / "fit.md", page(read_json_object(results / "fit.json")["jobs"]))


MORE: Mapping[str, Callable[[Path], Parts]] = {
    "base": base_parts,
    "contamination": contamination_parts,
    "hardening": hardening_parts,
    "second-round": second_round_parts,
    "encoders": lambda results: encoders_parts(read_json_object(results / "encoders.json")),
    "long": long_text_parts,
}
"""Parts of pages that are computed from their JSON file, or from other records."""


if __name__ == "__main__":
    render(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results")
