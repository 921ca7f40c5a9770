"""`tercet data check`: what is in data files, and what they share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_table

if TYPE_CHECKING:
    from tercet.data.checks import CheckReport, FileCheck, Finding, Overlap

LISTED = 20  # bad rows that the table lists; --json has all

data = typer.Typer(add_completion=False, no_args_is_help=True)
Entry = tuple[str, str]


@data.callback()
def group() -> None:
    """Look into data files before training on them."""


@data.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(help="Plain text, CSV/TSV, JSON lines or Parquet files.")
    ],
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A text column, by name or number; once for each."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The label column, by name or number.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Report bad rows, duplicates, labels and lengths of files, and what files share.

    Example: tercet data check quora-train.csv quora-dev.csv
    """
    from tercet.data.checks import check_files

    report = check_files(files, texts=text, label=label)
    if json:
        print(_as_json(report))
        return
    names = _short_names([found.file for found in report.files])
    rows = [(names[found.file], *entry) for found in report.files for entry in _entries(found)]
    for shared in report.overlaps:
        both = f"{names[shared.first]} + {names[shared.second]}"
        rows += [(both, *entry) for entry in _shared(shared)]
    print_table(("file", "what", "found"), rows)


def _short_names(files: list[str]) -> dict[str, str]:
    """Files without their folders, where that tells them apart."""
    short = {file: Path(file).name for file in files}
    return short if len(set(short.values())) == len(short) else {file: file for file in files}


def _as_json(report: CheckReport) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(report), ensure_ascii=False, indent=2)


def _entries(found: FileCheck) -> list[Entry]:
    columns = ", ".join(found.texts) + (f" -> {found.label}" if found.label else "")
    entries = [("columns", columns), ("rows", f"{found.rows:,}")]
    entries.append(("bad rows", f"{len(found.bad):,}"))
    entries += [("bad row", f"{row.place}: {row.reason}") for row in found.bad[:LISTED]]
    if len(found.bad) > LISTED:
        entries.append(("bad row", f"and {len(found.bad) - LISTED:,} more"))
    entries.append(("duplicate rows", _told(found.duplicate_rows)))
    entries.append(("duplicate texts", _told(found.duplicate_texts)))
    if found.labels is not None:
        entries.append(("label conflicts", _told(found.conflicts)))
    return entries + _labels(found) + _lengths(found)


def _told(finding: Finding) -> str:
    if not finding.count:
        return "0"
    first = ", ".join("/".join(map(str, group[:4])) for group in finding.lines[:3])
    return f"{finding.count:,} (lines {first}{', ...' if len(finding.lines) > 3 else ''})"


def _labels(found: FileCheck) -> list[Entry]:
    labels = found.labels
    if labels is None:
        return []
    entries = []
    if labels.lowest is not None and labels.highest is not None:
        entries.append(
            ("label range", f"{labels.lowest:g} to {labels.highest:g}, mean {labels.mean:.3g}")
        )
    if labels.counts is None:
        entries.append(("different labels", f"{labels.different:,}"))
        return entries
    total = sum(labels.counts.values())
    balance = [f"{name}: {count:,} ({count / total:.1%})" for name, count in labels.counts.items()]
    entries.append(("label balance", ", ".join(balance)))
    return entries


def _lengths(found: FileCheck) -> list[Entry]:
    words = found.lengths
    told = f"median {words.median:g}, 95 % up to {words.p95:g}, longest {words.longest:,}"
    return [("words a text", f"{told} (line {words.longest_line})")]


def _shared(shared: Overlap) -> list[Entry]:
    pairs = [] if shared.pairs is None else [("common pairs", _told(shared.pairs))]
    return [*pairs, ("common sentences", _told(shared.sentences))]
