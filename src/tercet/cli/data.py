"""`tercet data`: the content of data files, and what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tercet.cli.console import print_table
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.data.checks import CheckReport, FileCheck, Occurrences, Overlap
    from tercet.data.overlap import FileOverlap, OverlapReport, SeenRows

LISTED = 20  # bad rows in the table; --json lists all
LINES = 4  # of the rows that an overlap finds

data = typer.Typer(add_completion=False, no_args_is_help=True)
Entry = tuple[str, str]


@data.callback()
def group() -> None:
    """Check data files before training on them."""


@data.command()
def check(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Plain text, CSV/TSV, JSON lines or Parquet files."),
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


@data.command()
def overlap(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Training files, then the evaluation file, unless --eval."
        ),
    ],
    evaluation: Annotated[
        list[Path] | None,
        typer.Option("--eval", metavar="FILE", help="An evaluation file; may be repeated."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A text column, by name or number; may be repeated."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The label column, by name or number.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Count the evaluation rows that training files contain or imply.

    exact: the same texts; folded: the same letters and digits; both texts: each text of the pair
    is in some training row; implied: known duplicates (training pairs labelled 1 of 0 and 1)
    connect the two texts. Pairs count in either order. Training files are read in a stream.

    Example: tercet data overlap quora-train.csv quora-positives.csv quora-dev.csv
    """
    from tercet.data.overlap import find_overlap

    train, scored = (files, evaluation) if evaluation else (files[:-1], files[-1:])
    if not train:
        raise TercetError("Give at least one training file and one evaluation file.")
    report = find_overlap(train, scored, texts=text, label=label)
    if json:
        print(_as_json(report))
        return
    names = _short_names([file.file for file in report.files])
    rows = [(names[file.file], *entry) for file in report.files for entry in _found(file)]
    print_table(("file", "what", "rows", "share", "first lines"), rows)


def _found(file: FileOverlap) -> list[tuple[str, str, str, str]]:
    entries = [("usable", f"{file.rows:,}", "", "")]
    entries.append(("exact", *_seen(file.exact, file.rows)))
    entries.append(("folded", *_seen(file.folded, file.rows)))
    if file.texts is not None:
        entries.append(("both texts", *_seen(file.texts, file.rows)))
    for name, seen in (file.implied or {}).items():
        of_label = file.labels.get(name)
        what = "implied" if of_label is None else f"implied, label {name}"
        entries.append((what, *_seen(seen, of_label or file.rows)))
    return entries


def _seen(seen: SeenRows, rows: int) -> tuple[str, str, str]:
    more = ", ..." if seen.count > LINES else ""
    lines = ", ".join(map(str, seen.lines[:LINES])) + more
    return f"{seen.count:,} of {rows:,}", f"{seen.count / rows:.1%}", lines


def _short_names(files: list[str]) -> dict[str, str]:
    """File names without folders, if they are distinct."""
    short = {file: Path(file).name for file in files}
    return short if len(set(short.values())) == len(short) else {file: file for file in files}


def _as_json(report: CheckReport | OverlapReport) -> str:
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
