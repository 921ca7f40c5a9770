"""Render the pages of results/ from the JSON files and run records beside them: `make results`.

python tools/render_results.py [RESULTS]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from tercet.files import read_json_object, write_text
from tercet.reproduce.contrasts import contrasts_table
from tercet.reproduce.facts import facts_of
from tercet.reproduce.figure import draw
from tercet.reproduce.methods import methods_page
from tercet.reproduce.runs import with_earlier
from tercet.reproduce.table import (
    OLDER,
    TASKS,
    ExperimentRow,
    build_rows,
    markdown_table,
    write_table,
)

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "tools" / "pages"
POOLING = "pooling"
sys.path.insert(0, str(ROOT / "studies"))

Tables = Mapping[str, Sequence[ExperimentRow]]


def render(results: Path) -> None:
    """Write all pages and charts that are made of records."""
    reproduction = results / "reproduction"
    folders = [runs.parent for runs in sorted(reproduction.rglob("runs"))]
    tables = {
        folder.relative_to(reproduction).as_posix(): render_table(folder)
        for folder in folders
        if folder.name != OLDER
    }
    write_text(reproduction / "methods.md", methods_page())
    render_findings(reproduction, tables)
    render_contamination(results)


def render_table(folder: Path) -> list[ExperimentRow]:
    """table.md, table.json and figure.svg of an encoder's runs."""
    outcomes = with_earlier([], folder)
    rows = build_rows(outcomes, folder)
    write_table(rows, folder, facts=facts_of(outcomes, folder))
    draw(rows, folder / "figure.svg")
    return rows


def render_findings(folder: Path, tables: Tables) -> None:
    """findings.md and forgetting.svg."""
    import forgetting  # in studies/

    document = json.loads((folder / "forgetting.json").read_text("utf-8"))
    scores, steps = document["scores"], document["steps"]
    write_text(folder / "forgetting.svg", forgetting.draw(scores, steps=steps))
    encoders = {name: rows for name, rows in tables.items() if not name.startswith(POOLING)}
    parts = {
        "contrasts": "\n".join(contrasts_table(encoders)),
        "stages": "\n".join(stages_table(folder, encoders)),
        "forgetting": forgetting.table(scores, steps=steps),
        "pooling": "\n".join(pooling_table(tables, encoders)),
    }
    write_text(folder / "findings.md", fill("findings.md", parts))


def fill(page: str, parts: Mapping[str, str]) -> str:
    """A page of tools/pages with its {names} replaced."""
    text = (PAGES / page).read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def render_contamination(results: Path) -> None:
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
    parts = {
        **document["made_with"],
        "sets": "\n".join(markdown_table(["set", "seen", "rows", "share"], sets)),
        "quora": "\n".join(markdown_table(["pairs", "rows", *kinds], pairs)),
    }
    write_text(results / "contamination.md", fill("contamination.md", parts))


def stages_table(folder: Path, encoders: Tables) -> list[str]:
    """Dev scores of simcse/all-tasks after each of its stages."""
    lines = []
    for encoder in encoders:
        files = sorted((folder / encoder / "runs" / "simcse" / "all-tasks").glob("*/summary.json"))
        runs = [read_json_object(file)["stages"] for file in files]
        for stages in zip(*runs, strict=True):
            cells = [_score([stage["dev"][task] for stage in stages]) for task in TASKS]
            lines.append([encoder, stages[0]["stage"], *cells, str(len(runs))])
    return markdown_table(["encoder", "after", *TASKS.values(), "seeds"], lines)


def _score(scores: Sequence[Mapping[str, Mapping[str, float]]]) -> str:
    """The mean over seeds of a task's first metric in its first mode."""
    return f"{fmean(next(iter(next(iter(each.values())).values())) for each in scores):.3f}"


def pooling_table(tables: Tables, encoders: Tables) -> list[str]:
    """The recipes that were run with both kinds of pooling."""
    lines = []
    for encoder, rows in encoders.items():
        others = {row.name: row for row in tables.get(f"{POOLING}/{encoder}", [])}
        for row in (row for row in rows if row.name in others):
            for kind, each in (("pooler", row), ("mean", others[row.name])):
                cells = [
                    f"{each.measured[task].mean:.3f} ({len(each.measured[task].values)})"
                    if task in each.measured
                    else ""
                    for task in TASKS
                ]
                lines.append([row.name, encoder, kind, *cells])
    return markdown_table(["recipe", "encoder", "pooling", *TASKS.values()], lines)


if __name__ == "__main__":
    render(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results")
