"""`tercet data check`: the content of data files, and what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_table

if TYPE_CHECKING:
    from tercet.data.checks import CheckReport, FileCheck, Occurrences, Overlap

LISTED = 20  # bad rows in the table; --json lists all

data = typer.Typer(add_completion=False, no_args_is_help=True)
Entry = tuple[str, str]


@data.callback()
def group() -> None:
    """Check data files before training on them."""


@data.command()
def check(
    files: Annotated[
        list[Path], typer.Argument(help="Plain text, CSV/TSV, JSON lines or Parquet files.")
    ],
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A text column, by name or number; may be repeated."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The label column, by name or number.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Report bad rows, duplicates, labels and lengths of files, and overlaps between files.

    Example: tercet data check quora-train.csv quora-dev.csv
    """
    from tercet.data.checks import check_files

    report = check_files(files, texts=text, label=label)
    if json:
        print(_as_json(report))
        return
    names = _short_names([file.file for file in report.files])
    rows = [(names[file.file], *entry) for file in report.files for entry in _entries(file)]
    for shared in report.overlaps:
        both = f"{names[shared.first]} + {names[shared.second]}"
        rows += [(both, *entry) for entry in _shared(shared)]
    print_table(("file", "what", "found"), rows)


def _short_names(files: list[str]) -> dict[str, str]:
    """File names without folders, if they are distinct."""
    short = {file: Path(file).name for file in files}
    return short if len(set(short.values())) == len(short) else {file: file for file in files}


def _as_json(report: CheckReport) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(report), ensure_ascii=False, indent=2)


def _entries(file: FileCheck) -> list[Entry]:
    columns = ", ".join(file.texts) + (f" -> {file.label}" if file.label else "")
    entries = [("columns", columns), ("rows", f"{file.rows:,}")]
    entries.append(("bad rows", f"{len(file.bad):,}"))
    entries += [("bad row", f"{row.place}: {row.reason}") for row in file.bad[:LISTED]]
    if len(file.bad) > LISTED:
        entries.append(("bad row", f"and {len(file.bad) - LISTED:,} more"))
    entries.append(("duplicate rows", _count(file.duplicate_rows)))
    entries.append(("duplicate texts", _count(file.duplicate_texts)))
    if file.labels is not None:
        entries.append(("label conflicts", _count(file.conflicts)))
    return entries + _labels(file) + _lengths(file)


def _count(finding: Occurrences) -> str:
    if not finding.count:
        return "0"
    first = ", ".join("/".join(map(str, group[:4])) for group in finding.lines[:3])
    return f"{finding.count:,} (lines {first}{', ...' if len(finding.lines) > 3 else ''})"


def _labels(file: FileCheck) -> list[Entry]:
    labels = file.labels
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


def _lengths(file: FileCheck) -> list[Entry]:
    words = file.lengths
    lengths = f"median {words.median:g}, 95 % up to {words.p95:g}, longest {words.longest:,}"
    return [("words per text", f"{lengths} (line {words.longest_line})")]


def _shared(shared: Overlap) -> list[Entry]:
    pairs = [] if shared.pairs is None else [("common pairs", _count(shared.pairs))]
    return [*pairs, ("common sentences", _count(shared.sentences))]
