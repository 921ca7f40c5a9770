"""`tercet predict`: one task's predictions for sentences or pairs, as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from tercet.cli.options import ModelOption, PluginOption
from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.model import Model, PairMode
    from tercet.specs import Floats, TaskSpec

BLOCK = 2048  # inputs that are sorted by length, predicted and printed together
STDIN = "standard input"

Texts = tuple[str, ...]
"""One sentence, or the two sentences of a pair."""


def predict(
    task: Annotated[str, typer.Argument(help="A task of the model.")],
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE|-", help="Sentences or pairs; - reads standard input."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A sentence; two make a pair.")
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
    plugin: PluginOption = None,
) -> None:
    """Predict one task for sentences or pairs, as JSON lines.

    A pair is two columns of FILE, two --text options, or a line of standard input with a tab.

    Example: tercet predict sentiment --text "What a lovely film." --model runs/best
    """
    if (file is None) == (not text):
        raise TercetError("Give either FILE (or -) or --text.")
    if column and file in (None, "-"):
        raise TercetError("--column needs FILE.")
    from tercet.model import load

    loaded = load(model)
    resolved = loaded.resolve_mode(task, mode)
    width = 1 if resolved == "single" else 2
    inputs = _inputs(file, text or [], column, width=width)
    while block := list(islice(inputs, BLOCK)):
        for line in _lines(loaded, task, block, mode):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _inputs(
    file: str | None, text: Sequence[str], column: Sequence[str] | None, *, width: int
) -> Iterator[Texts]:
    if file == "-":
        return _stdin(sys.stdin.buffer, width=width)
    if file is None:
        if len(text) % width:
            raise TercetError(f"--text: a pair needs two, and there are {len(text)}.")
        return iter([tuple(text[start : start + width]) for start in range(0, len(text), width)])
    from tercet.data.examples import read_texts

    return zip(*read_texts(Path(file), column or None, width=width), strict=True)


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


def _lines(model: Model, task: str, block: list[Texts], mode: PairMode | None) -> Iterator[str]:
    spec = model.tasks[task]
    pairs = len(block[0]) == 2
    inputs: Any = block if pairs else [text for (text,) in block]
    predicted = model.predictions(task, inputs, mode)
    if spec.multi_label and spec.labels is not None:
        thresholds = model.thresholds(task, model.resolve_mode(task, mode))
        rows = _label_fields(predicted, spec.labels, thresholds)
    else:
        rows = _fields(task, spec, predicted, pairs=pairs)
    for texts, fields in zip(block, rows, strict=True):
        named = dict(zip(("first", "second") if pairs else ("text",), texts, strict=True))
        yield json.dumps({**named, **fields}, ensure_ascii=False)


def _label_fields(
    predicted: Floats, labels: list[str], thresholds: Sequence[float] | None
) -> Iterable[dict[str, Any]]:
    """The labels that an input has, and the probabilities of all."""
    from tercet.model import to_label_sets

    return [
        {
            "labels": found.labels,
            "names": found.names,
            "probabilities": [round(share, 6) for share in found.probabilities],
        }
        for found in to_label_sets(predicted, labels, thresholds)
    ]


def _fields(
    task: str, spec: TaskSpec, predicted: Floats, *, pairs: bool
) -> Iterable[dict[str, Any]]:
    """A grade under the task's name, the probability of a pair's class 1, or all classes."""
    from tercet.model import Prediction, to_predictions

    if spec.labels is None:
        return [{task: round(grade, 6)} for grade in predicted.tolist()]
    classes = to_predictions(predicted, spec.labels, Prediction)
    if pairs and len(spec.labels) == 2:
        return [{"probability": round(chosen.probabilities[1], 6)} for chosen in classes]
    return [
        {
            "label": chosen.label,
            "name": chosen.name,
            "probabilities": [round(share, 6) for share in chosen.probabilities],
        }
        for chosen in classes
    ]
