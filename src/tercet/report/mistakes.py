"""All mistakes of all tasks, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.data.spreadsheet import neutralised
from tercet.evaluation.answers import Answers
from tercet.evaluation.compare import names_of
from tercet.evaluation.evaluation import Evaluation
from tercet.evaluation.per_class import severity

GRADE_SHARE = 0.1
"""A grade that is off by this share of its range or more is a mistake."""
DIGITS = 4
COLUMNS = (
    "model", "task", "file", "line", "id", "text", "text2", "label", "predicted", "probability",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MistakesFile:
    """Rows under named columns, before they are made safe for spreadsheets."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def neutralised_cells(self) -> int:
        """How many cells a spreadsheet would run as formulas; `to_csv` changes them."""
        return sum(neutralised(cell) != cell for row in self.rows for cell in row)

    def to_csv(self) -> str:
        written = io.StringIO()
        writer = csv.writer(written)
        writer.writerow(self.columns)
        writer.writerows([neutralised(cell) for cell in row] for row in self.rows)
        return written.getvalue()


def mistakes_file(evaluations: Sequence[Evaluation]) -> MistakesFile:
    """The mistakes of every model, task by task, the worst first.

    The columns `model`, `id` and `text2` exist only if several models are compared, a file has ids
    or a task reads pairs.
    """
    rows = [
        {"model": name, **row}
        for name, evaluation in zip(names_of(evaluations), evaluations, strict=True)
        for result in evaluation.suites.values()
        for answers in result.answers()
        for row in _mistakes(answers)
    ]
    unused = {column for column in ("id", "text2") if not any(row[column] for row in rows)}
    unused |= {"model"} if len(evaluations) == 1 else set()
    columns = [column for column in COLUMNS if column not in unused]
    return MistakesFile(columns, [[row[column] for column in columns] for row in rows])


def _mistakes(answers: Answers) -> Iterator[dict[str, str]]:
    weights, predicted, places = severity(answers), answers.predicted, answers.places
    low, high = answers.span
    least = GRADE_SHARE * (high - low) if answers.classes is None else 0.0
    wrong = np.flatnonzero((weights > 0.0) & (weights >= least))
    for row in wrong[np.argsort(-weights[wrong], kind="stable")].tolist():
        texts = [column[row] for column in answers.texts[:2]]
        yield {
            "task": answers.task,
            "file": "" if places is None else places.file(row),
            "line": "" if places is None else str(places.lines[row]),
            "id": "" if places is None else places.ids[row],
            "text": texts[0] if texts else "",
            "text2": texts[1] if len(texts) > 1 else "",
            "label": _written(answers, answers.labels[row]),
            "predicted": _written(answers, predicted[row]),
            "probability": _probability(answers, row, predicted[row]),
        }


def _written(answers: Answers, value: Any) -> str:
    """A row of labels or predictions: names of classes, or a grade with its digits."""
    return f"{value:.{DIGITS}g}" if answers.classes is None else answers.name(value)


def _probability(answers: Answers, row: int, predicted: Any) -> str:
    """Of the predicted class or classes of a row; empty for grades."""
    if answers.classes is None:
        return ""
    places = np.flatnonzero(predicted) if answers.several else [int(predicted)]
    return ", ".join(f"{answers.predictions[row, place]:.{DIGITS}f}" for place in places)
