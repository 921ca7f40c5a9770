"""`tercet predict`: one task's predictions for sentences or pairs, as JSON lines or as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from tercet.cli.console import MESSAGES, print_message, print_table, progress
from tercet.cli.options import (
    LayersOption,
    LongOption,
    ModelOption,
    PluginOption,
    check_not_read,
    print_long,
)
from tercet.data.files import find_file
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.cli.predictor import Answered, Predictor, Texts
    from tercet.data.text_rows import TextRows

BLOCK = 2048  # inputs that are sorted by length, predicted and printed together
FILE_BLOCK = 8192  # the same where a file is written
STDIN = "standard input"


def predict(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task of the model.")],
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE|-", help="Sentences or pairs; - reads standard input."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A sentence; two make a pair.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="A .csv, .tsv, .jsonl or .parquet file: all columns of FILE, and the predictions.",
        ),
    ] = None,
    model: ModelOption = None,
    mode: Annotated[
        Literal["cross", "bi"] | None,
        typer.Option(help="Read pairs jointly, or compare vectors; default: the more accurate."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A text column of FILE; give it twice for pairs."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Of two classes, name the second where its probability is at least P."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The label column of FILE: score the predictions."),
    ] = None,
    wrong_only: Annotated[
        bool, typer.Option("--wrong-only", help="Only the rows whose prediction is not the label.")
    ] = False,
    layers: LayersOption = None,
    long: LongOption = None,
    plugin: PluginOption = None,
) -> None:
    """Predict one task for sentences or pairs, as JSON lines or as a file with all its columns.

    A pair is two columns of FILE, two --text options, or a line of standard input with a tab. With
    --out, label, name and the probability p_CLASS of each class are added to the columns of FILE.

    Example: tercet predict sentiment reviews.csv --out predicted.csv --model runs/best
    """
    if (file is None) == (not text):
        raise TercetError("Give either FILE (or -) or --text.")
    for option, given in {"--column": column, "--out": out, "--label": label}.items():
        if given and file in (None, "-"):
            raise TercetError(f"{option} needs FILE.")
    if wrong_only and label is None:
        raise TercetError("--wrong-only needs --label.")
    _check_out(out)
    from tercet.cli.predictor import Predictor
    from tercet.model import load

    loaded = load(model, layers=layers, long=long)
    predictor = Predictor(loaded, task, mode, threshold, wrong_only=wrong_only)
    if file in (None, "-"):
        _print(predictor, _inputs(file, text or [], width=predictor.width))
        print_long(loaded)
        return
    from tercet.data.text_rows import TextRows
    from tercet.evaluation.labelled import own_texts

    path = find_file(str(file))
    if wrong_only:
        check_not_read("--out", out, path)
    columns = column or own_texts(predictor.spec, path)
    rows = TextRows.open(path, columns, label, width=predictor.width)
    predictor.read_labels(rows)
    if out is None:
        _print(predictor, rows.texts())
    else:
        _write(predictor, rows, out)
    print_long(loaded)
    _print_scores(predictor)


def _check_out(out: Path | None) -> None:
    if out is None:
        return
    from tercet.data.table_files import check_suffix

    check_suffix(out)
    if not out.resolve().parent.is_dir():
        raise TercetError(f"--out {out}: its folder does not exist.")


def _inputs(file: str | None, text: Sequence[str], *, width: int) -> Iterator[Texts]:
    if file == "-":
        return _stdin(sys.stdin.buffer, width=width)
    if len(text) % width:
        raise TercetError(f"--text: a pair needs two, and there are {len(text)}.")
    return iter([tuple(text[start : start + width]) for start in range(0, len(text), width)])


def _stdin(stream: BinaryIO, *, width: int) -> Iterator[Texts]:
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise TercetError(f"{STDIN} line {number}: is not UTF-8.") from error
        texts = (line,) if width == 1 else tuple(line.split("\t"))
        if len(texts) != width:
            raise TercetError(
                f"{STDIN} line {number}: a pair is two sentences separated by one tab, and this "
                f"line has {len(texts) - 1} tabs."
            )
        yield texts


def _print(predictor: Predictor, inputs: Iterator[Texts]) -> None:
    while block := list(islice(inputs, BLOCK)):
        answered = predictor.answer(block)
        for row in answered.rows:
            sys.stdout.write(json.dumps(_line(answered, row), ensure_ascii=False) + "\n")
        sys.stdout.flush()


def _line(answered: Answered, row: int) -> dict[str, Any]:
    texts = answered.texts[row]
    named = dict(zip(("first", "second") if len(texts) == 2 else ("text",), texts, strict=True))
    return {**named, **answered.fields(row)}


def _write(predictor: Predictor, rows: TextRows, out: Path) -> None:
    """Write all columns of a file and the predictions of its rows, in blocks."""
    from tercet.cli.predictor import added_names, with_columns, with_fields
    from tercet.data.records import Records
    from tercet.data.spreadsheet import describe_formulas
    from tercet.data.table_files import is_spreadsheet, write_objects, write_table

    records = Records.open(rows.path, rows.reading)
    names = added_names(predictor, records.columns.names)
    for name, changed in names.items():
        if name != changed:
            print_message(
                f"{rows.path} already has a column `{name}`: the prediction is in `{changed}`."
            )
    count = 0

    def answers() -> Iterator[Answered]:
        nonlocal count
        inputs = rows.texts()
        with progress("predicting", total=records.rows) as shown:
            while block := list(islice(inputs, FILE_BLOCK)):
                answered = predictor.answer(block, shown, rows=records.rows)
                count += len(answered.rows)
                yield answered

    if out.suffix == ".jsonl":
        blocks = zip(records.objects(FILE_BLOCK), answers(), strict=True)
        write_objects(out, (row for block in blocks for row in with_fields(*block, names)))
    else:
        as_text = is_spreadsheet(out)
        batches = zip(records.batches(FILE_BLOCK, as_text=as_text), answers(), strict=True)
        schema = with_columns(
            records.schema(as_text=as_text).empty_table(), predictor.answer([]), names
        ).schema
        tables = (with_columns(batch, answered, names) for batch, answered in batches)
        formulas = write_table(
            out, schema, (batch for table in tables for batch in table.to_batches())
        )
        if formulas:
            print_message(describe_formulas(formulas))
    print_message(f"Wrote {count:,} of {records.rows:,} rows to {out}.")


def _print_scores(predictor: Predictor) -> None:
    scores = predictor.scores()
    if scores:
        rows = [
            [metric, "undefined" if value is None else f"{value:.4f}", f"{predictor.done:,}"]
            for metric, value in scores.items()
        ]
        print_table(["Metric", "Value", "Rows"], rows, console=MESSAGES)
