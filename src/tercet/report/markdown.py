"""A report as Markdown, short enough for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tercet.evaluation.presentation import Section, Table
from tercet.report.page import Page

SHOWN = 10
"""Sentences per task; the HTML report has the others."""


def render_markdown(page: Page) -> str:
    return "\n\n".join(_blocks(page)) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows unchanged, also in a table."""
    for mark in "\\`*_[]<>|#~$":
        text = text.replace(mark, f"\\{mark}")
    return " / ".join(text.replace("&", "&amp;").splitlines())


def _blocks(page: Page) -> Iterator[str]:
    yield f"# {escape(page.title)}"
    for facts in page.facts:
        yield "\n".join(f"- {name}: {escape(value)}" for name, value in facts.items())
    if page.findings:
        yield "## At a glance"
        yield "\n".join(
            f"- **{escape(subject)}**: {escape(text)}" for subject, text in page.findings
        )
    for section in page.sections:
        if tables := [*_tables(section)]:
            yield f"## {escape(section.title)}"
            yield from tables
    if page.missing:
        yield "## Missing data"
        yield "\n".join(
            f"- suite {missing.suite}, task {escape(missing.task)}: {escape(missing.file)}"
            for missing in page.missing
        )


def _tables(section: Section) -> Iterator[str]:
    for table in section.tables:
        yield _table(_first_sentences(table) if table.filters else table)
    for part in section.parts:
        yield from _tables(part)


def _table(table: Table) -> str:
    numeric = table.numeric
    rules = ["---:" if name in numeric else "---" for name in table.columns]
    lines = [_row(map(escape, table.columns)), _row(rules)]
    marks = {"right": "✓ ", "wrong": "✗ ", "": ""}
    lines += [_row(marks[cell.mark] + escape(cell.text) for cell in row) for row in table.rows]
    return f"{escape(table.caption)}:\n\n" + "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _first_sentences(table: Table) -> Table:
    """The first rows of each value of the first filter, such as a task."""
    place = table.columns.index(table.filters[0])
    left = dict.fromkeys(table.values(table.filters[0]), SHOWN)
    rows = []
    for row in table.rows:
        if left[row[place].text]:
            left[row[place].text] -= 1
            rows.append(row)
    return replace(table, rows=rows)
