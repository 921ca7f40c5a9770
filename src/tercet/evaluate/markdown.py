"""An evaluation as Markdown, short enough for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tercet.evaluate.answers import Document, Texts, tasks_of
from tercet.evaluate.compare import compare
from tercet.evaluate.comparison_tables import comparison_tables
from tercet.evaluate.findings import findings
from tercet.evaluate.suite_tables import suite_tables
from tercet.evaluate.tables import (
    Table,
    facts,
    listed,
    mistakes_table,
    tasks_table,
)

SHOWN = 10
"""Sentences a table; the report has the others."""


def to_markdown(document: Document, texts: Texts) -> str:
    """The figures of every suite, and the worst mistakes."""
    parts = [f"# Evaluation of {escape(document['model']['name'])}", _facts(document)]
    if points := findings(document):
        told = (f"- **{escape(about)}**: {escape(text)}" for about, text in points.items())
        parts += ["## At a glance", "\n".join(told)]
    if tasks_of(document):
        parts += ["## Tasks", _table(tasks_table(document)), _overall(document)]
    for title, tables in suite_tables(document).items():
        parts += [f"## {title}", *(_table(_worst(table)) for table in tables)] if tables else []
    if all(task in texts for task in tasks_of(document)) and texts:
        parts += ["## Mistakes", _table(_worst(mistakes_table(document, texts)))]
    return _joined([*parts, *_missing(document)])


def comparison_to_markdown(documents: Sequence[Document], texts: Sequence[Texts]) -> str:
    """Models side by side."""
    found = compare(documents, texts)
    parts = [f"# Comparison of {escape(listed(found.names))}"]
    for title, tables in comparison_tables(found, documents).items():
        parts += [f"## {title}", *(_table(_worst(table)) for table in tables)]
    return _joined([*parts, *(line for one in documents for line in _missing(one))])


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in a table too."""
    for mark in "\\`*_[]<>|#~$":
        text = text.replace(mark, f"\\{mark}")
    return " / ".join(text.replace("&", "&amp;").splitlines())


def _facts(document: Document) -> str:
    return "\n".join(f"- {name}: {escape(value)}" for name, value in facts(document).items())


def _overall(document: Document) -> str:
    means = document["suites"]["tasks"]["overall"]
    told = ", ".join(
        f"{name} {'undefined' if value is None else f'{value:.4f}'}"
        for name, value in means.items()
    )
    return f"Over all tasks: {told}."


def _table(table: Table) -> str:
    rules = ["---:" if name in table.numeric else "---" for name in table.columns]
    lines = [_row(map(escape, table.columns)), _row(rules)]
    lines += [_row(_mark(cell.mark) + escape(cell.text) for cell in row) for row in table.rows]
    return f"{escape(table.caption)}:\n\n" + "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _mark(mark: str) -> str:
    return {"right": "✓ ", "wrong": "✗ "}.get(mark, "")


def _worst(table: Table) -> Table:
    """The first rows of each task, where the rows are sentences."""
    if table.columns[0] != "Sentence":
        return table
    place = table.columns.index("Task")
    left = dict.fromkeys(table.values("Task"), SHOWN)
    rows = []
    for row in table.rows:
        if left[row[place].text]:
            left[row[place].text] -= 1
            rows.append(row)
    return Table(table.caption, table.columns, rows, table.numeric)


def _missing(document: Document) -> list[str]:
    lines = [
        f"- suite {one['suite']}, task {escape(one['task'])}: {escape(one['file'])}"
        for one in document["missing"]
    ]
    return ["## Missing data", "\n".join(lines)] if lines else []


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(parts) + "\n"
