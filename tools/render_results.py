"""Render the pages of results/ from the JSON files and run records beside them: `make results`.

python tools/render_results.py [RESULTS]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from long_pages import encoders_parts, long_parts, memory_chart  # beside this file

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
SHARING = (
    "bertology/baseline",
    "bertology/shared",
    "bertology/head-mod",
    "bertology/freeze-sst",
    "robust/exp03",
    "robust/exp05",
    "robust/exp06",
)
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
    write_text(reproduction / "analyses.md", fill("analyses.md", analyses(reproduction, tables)))
    render_contamination(results)
    seeds = base_seeds(reproduction / "all-mpnet-base-v2", read_json_object(results / "base.json"))
    render_page(results, "base", {"seeds": "\n".join(seeds)})
    render_page(results, "small", {})
    long = read_json_object(results / "long.json")
    write_text(results / "long.md", fill("long.md", long_parts(long)))
    write_text(results / "long-memory.svg", memory_chart(long))
    encoders = read_json_object(results / "encoders.json")
    write_text(results / "encoders.md", fill("encoders.md", encoders_parts(encoders)))


def render_page(results: Path, name: str, parts: Mapping[str, str]) -> None:
    """A page whose tables are the records of a JSON file of the same name, and further parts."""
    records = read_json_object(results / f"{name}.json")["records"]
    tables = {
        record: "\n".join(markdown_table(found["columns"], found["rows"]))
        for record, found in records.items()
    }
    write_text(results / f"{name}.md", fill(f"{name}.md", {**tables, **parts}))


def card(results: Path) -> str:
    """What the card of the shipped model says beyond what every card does."""
    document = read_json_object(results / "small.json")
    records = {name: record["rows"] for name, record in document["records"].items()}
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
    parts = {
        **document["values"],
        "seeds": "\n".join(markdown_table(["dev", "this seed", "all three"], seeds)),
        "sts": f"{ours} (all-MiniLM-L6-v2: {theirs})",
        "calibration": ", ".join(errors),
        "seen": "; ".join(seen),
        "implied": f"{positives['implied']:,} of {positives['rows']:,}",
    }
    return fill("card.md", parts)


def _from_to(values: Sequence[str]) -> str:
    low, high = (f"{pick(map(float, values)):.3f}" for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def base_seeds(folder: Path, document: Mapping[str, Any]) -> list[str]:
    """The dev scores of every seed of tercet/base, from its runs."""
    files = sorted((folder / "runs" / "tercet" / "base").glob("*/summary.json"))
    runs = [read_json_object(file) for file in files]
    lines = []
    for name, target in document["targets"].items():
        task, mode, metric = name.split(", ")
        scores = [run["dev"][task][mode][metric] for run in runs]
        lines.append([name, *(f"{score:.4f}" for score in scores), f"{target:.3f}"])
    means = [fmean(float(line[place]) for line in lines[:3]) for place in range(1, len(runs) + 1)]
    lines.append(["mean of the first three", *(f"{mean:.4f}" for mean in means), "0.790"])
    seeds = [file.parent.name.removeprefix("seed-") for file in files]
    commits = ", ".join(sorted({run["made_with"]["commit"] for run in runs}))
    return [*markdown_table(["dev", *seeds, "target"], lines), "", f"Commit {commits}."]


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


def analyses(folder: Path, tables: Tables) -> dict[str, str]:
    """The sections of analyses.md, encoder by encoder."""
    lines: list[str] = []
    for encoder, rows in tables.items():
        file = folder / encoder / "analyses.json"
        found = read_json_object(file) if file.is_file() else {}
        sections = [*analysis_sections(found), *sharing_section(rows)]
        if sections and not encoder.startswith(POOLING):
            lines += [f"## {encoder}", "", *sections]
    return {"analyses": "\n".join(lines).rstrip()}


def analysis_sections(document: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    vectors = document.get("vectors", {})
    for title, key in {
        "SentEval transfer": "transfer",
        "HANS: share of different pairs that are taken for the same": "hans",
        "Alignment and uniformity (lower is better)": "geometry",
    }.items():
        found = {name: _flat(each[key]) for name, each in vectors.items()}
        if any(found.values()):
            heads = list(next(iter(found.values())))
            cells = (
                [name, *(_three(each.get(head)) for head in heads)] for name, each in found.items()
            )
            lines += [f"### {title}", "", *markdown_table(["recipe", *heads], cells), ""]
    for name, tasks in document.get("confusion", {}).items():
        for task, each in tasks.items():
            lines += [f"### Confusion of {name}, {task}: label by prediction", ""]
            cells = [
                [label, *(f"{count:,} ({count / max(1, sum(row)):.0%})" for count in row)]
                for label, row in zip(each["classes"], each["counts"], strict=True)
            ]
            lines += [*markdown_table(["", *each["classes"]], cells), ""]
    for name, tasks in document.get("mistakes", {}).items():
        lines += [f"### The worst mistakes of {name}", ""]
        cells = [[task, *mistake.values()] for task, every in tasks.items() for mistake in every]
        lines += [*markdown_table(["task", "file", "line", "expected", "predicted"], cells), ""]
    return lines


def sharing_section(rows: Sequence[ExperimentRow]) -> list[str]:
    """What shared layers and freezing do to each task."""
    chosen = [row for row in rows if row.name in SHARING and row.measured]
    if not chosen:
        return []
    cells = (
        [row.name, *(f"{row.measured[task].mean:.3f}" for task in TASKS), str(_seeds(row))]
        for row in chosen
    )
    title = "### What shared layers and freezing do to each task"
    return [title, "", *markdown_table(["recipe", *TASKS.values(), "seeds"], cells), ""]


def _seeds(row: ExperimentRow) -> int:
    return max(len(measured.values) for measured in row.measured.values())


def _flat(scores: Mapping[str, Any]) -> dict[str, float]:
    """Scores by name; those of a group as `group, name`."""
    flat: dict[str, float] = {}
    for name, value in scores.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        flat |= {f"{name}, {key}" if key else name: each for key, each in inner}
    return flat


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


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
