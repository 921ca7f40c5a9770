"""results/reproduction: tables, charts, findings and analyses from the runs of each encoder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rendering.pages import fill
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
ANALYSED = (
    "simcse/bi-encoder",
    "simcse/unsupervised",
    "simcse/supervised",
    "sbert/exp1",
    "robust/exp14",
)
"""What tools/analyse_reports.py analyses, which takes long to import."""
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "studies"))

Tables = Mapping[str, Sequence[ExperimentRow]]


def render_reproduction(folder: Path) -> None:
    """Write all pages and charts of the experiments of the reports."""
    folders = [runs.parent for runs in sorted(folder.rglob("runs"))]
    tables = {
        each.relative_to(folder).as_posix(): render_table(each)
        for each in folders
        if each.name != OLDER
    }
    write_text(folder / "methods.md", methods_page())
    render_findings(folder, tables)
    write_text(folder / "analyses.md", fill("analyses.md", analyses(folder, tables)))


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


def analyses(folder: Path, tables: Tables) -> dict[str, str]:
    """The sections of analyses.md, encoder by encoder."""
    lines: list[str] = []
    for encoder, rows in tables.items():
        files = sorted((folder / encoder / "analyses").glob("*.json"))
        documents = [read_json_object(file) for file in files]
        sections = [*analysis_sections(documents), *sharing_section(rows)]
        if sections and not encoder.startswith(POOLING):
            missing = not_analysed(document["recipe"] for document in documents)
            lines += [f"## {encoder}", "", *sections, *missing]
    return {"analyses": "\n".join(lines).rstrip()}


def not_analysed(recipes: Iterable[str]) -> list[str]:
    """Which analyses are missing, and why.

    recipes: those that were analysed
    """
    done = set(recipes)
    if not (missing := [name for name in ANALYSED if name not in done]):
        return []
    return [f"Not analysed: {', '.join(missing)}. Their models are needed, and not kept.", ""]


def analysis_sections(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """What tools/analyse_reports.py found, one document per recipe."""
    found = list(documents)
    lines = vector_sections([document for document in found if "transfer" in document])
    for document in found:
        lines += error_sections(document)
    if found:
        commits = ", ".join(
            f"{document['recipe']} at {document['made_with']['commit']}" for document in found
        )
        lines += [f"Trained, seed {found[0]['seed']}: {commits}.", ""]
    return lines


def vector_sections(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """One table per analysis, a line per recipe."""
    lines: list[str] = []
    for title, key in {
        "SentEval transfer": "transfer",
        "HANS: share of different pairs that are taken for the same": "hans",
        "Alignment and uniformity (lower is better)": "geometry",
    }.items():
        scores = {document["recipe"]: _flat(document[key]) for document in documents}
        heads = list(dict.fromkeys(head for each in scores.values() for head in each))
        if heads:
            cells = (
                [name, *(_three(each.get(head)) for head in heads)] for name, each in scores.items()
            )
            lines += [f"### {title}", "", *markdown_table(["recipe", *heads], cells), ""]
    return lines


def error_sections(document: Mapping[str, Any]) -> list[str]:
    """Confusion matrices, scores of each class and the worst mistakes of one recipe."""
    name = document["recipe"]
    lines: list[str] = []
    for task, found in document.get("confusion", {}).items():
        cells = [
            [label, *(f"{count:,} ({count / max(1, sum(row)):.0%})" for count in row)]
            for label, row in zip(found["classes"], found["counts"], strict=True)
        ]
        lines += [f"### Confusion of {name}, {task}: label by prediction", ""]
        lines += [*markdown_table(["", *found["classes"]], cells), ""]
    for task, classes in document.get("classes", {}).items():
        measures = ("precision", "recall", "f1")
        cells = [
            [each["name"], *(_three(each[key]) for key in measures), f"{each['support']:,}"]
            for each in classes
        ]
        lines += [f"### Errors of {name}, {task}, class by class", ""]
        lines += [*markdown_table(["class", "precision", "recall", "F1", "rows"], cells), ""]
    if "mistakes" in document:
        cells = [
            [task, *mistake.values()]
            for task, mistakes in document["mistakes"].items()
            for mistake in mistakes
        ]
        lines += [f"### The worst mistakes of {name}", ""]
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
