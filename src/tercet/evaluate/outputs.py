"""What evaluations leave as files: one model's, or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tercet.evaluate.compare import compare
from tercet.evaluate.comparison_tables import comparison_tables
from tercet.evaluate.evaluation import SCHEMA, Evaluation
from tercet.evaluate.geometry import GeometryResult
from tercet.evaluate.markdown import comparison_to_markdown, to_markdown
from tercet.evaluate.report import render_comparison, render_report
from tercet.evaluate.run_history import is_run, read_run
from tercet.evaluate.tables import Table


def to_json(found: Sequence[Evaluation]) -> dict[str, Any]:
    """The document of one evaluation; of several, all of them and their comparison."""
    documents = [one.to_json() for one in found]
    if len(documents) == 1:
        return documents[0]
    comparison = compare(documents, [one.rows for one in found])
    return {"schema": SCHEMA, "models": documents, "comparison": asdict(comparison)}


def to_report(found: Sequence[Evaluation], *, run: Path | None) -> str:
    """The HTML page; `run` is the run folder of the one model, where there is one."""
    documents = [one.to_json() for one in found]
    if len(documents) > 1:
        return render_comparison(documents, [one.rows for one in found])
    history = None if run is None else read_run(run)
    return render_report(documents[0], found[0].rows, mapped=_mapped(found[0]), run=history)


def to_text(found: Sequence[Evaluation]) -> str:
    """The Markdown."""
    documents = [one.to_json() for one in found]
    if len(documents) > 1:
        return comparison_to_markdown(documents, [one.rows for one in found])
    return to_markdown(documents[0], found[0].rows)


def to_tables(found: Sequence[Evaluation]) -> list[Table]:
    """The figures of several models and their differences, without the sentences."""
    documents = [one.to_json() for one in found]
    tables = comparison_tables(compare(documents, [one.rows for one in found]), documents)
    return [table for every in tables.values() for table in every if not table.filters]


def run_of(source: str) -> Path | None:
    """The run folder that a source is, or whose model it is."""
    folder = Path(source).resolve()
    return next((one for one in (folder, folder.parent) if is_run(one)), None)


def _mapped(found: Evaluation) -> list[str]:
    geometry = found.suites.get("geometry")
    plane = geometry.map if isinstance(geometry, GeometryResult) else None
    return [] if plane is None else plane.texts
