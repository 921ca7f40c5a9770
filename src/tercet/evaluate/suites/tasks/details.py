"""What is behind a task's metrics: confused classes, wrong rows, and the effect of length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.evaluate.answers import Answers
from tercet.evaluate.bootstrap import interval
from tercet.evaluate.metrics import Bounds, measure
from tercet.evaluate.presentation import Cell, Table, count, number, sentence_cell

Ints = NDArray[np.int64]
LENGTH_BINS = 6
MISTAKES = 40
"""Per task."""
SEED = 11711


def confusion(answers: Answers) -> Ints:
    """Counts of rows by expected and predicted class [classes, classes]."""
    from sklearn.metrics import confusion_matrix

    assert answers.classes is not None
    classes = np.arange(len(answers.classes))
    if not len(answers.labels):
        return np.zeros((len(classes), len(classes)), np.int64)
    predicted = answers.predicted.astype(np.int64)
    counts: Ints = confusion_matrix(answers.labels.astype(np.int64), predicted, labels=classes)
    return counts


def mistake_rows(answers: Answers) -> list[list[Cell]]:
    """The wrong classes with the highest confidence, the grades furthest off, or the rows with most
    wrong labels, worst first."""
    predicted, errors = answers.predicted, answers.errors
    by_error = answers.classes is None or answers.several
    weights = errors if by_error else answers.predictions.max(axis=1)
    wrong = np.flatnonzero(errors)
    worst = wrong[np.argsort(-weights[wrong], kind="stable")][:MISTAKES]
    return [
        [
            sentence_cell(answers.inputs(row)),
            Cell(answers.task),
            Cell(answers.name(answers.labels[row])),
            Cell(answers.name(predicted[row])),
            Cell(_how_wrong(answers, weight), float(weight)),
        ]
        for row, weight in zip(worst.tolist(), weights[worst], strict=True)
    ]


def _how_wrong(answers: Answers, weight: float) -> str:
    if answers.classes is None:
        return f"off by {weight:.1f}"
    if answers.several:
        return f"{weight:.0f} of {len(answers.classes)} labels wrong"
    return f"{weight:.0%} confident"


@dataclass(frozen=True, slots=True)
class LabelScores:
    """One label of a task whose rows have several; None where a value is undefined.

    support: rows that have it
    predicted: rows that are predicted to have it
    """

    name: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int
    predicted: int


def label_scores(answers: Answers) -> list[LabelScores]:
    """Every label of a task whose rows have several."""
    predicted = answers.predicted
    right = (answers.labels * predicted).sum(axis=0)
    given, expected = predicted.sum(axis=0), answers.labels.sum(axis=0)
    return [
        LabelScores(
            name=name,
            precision=_ratio(right[place], given[place]),
            recall=_ratio(right[place], expected[place]),
            f1=_ratio(2.0 * right[place], given[place] + expected[place]),
            support=int(expected[place]),
            predicted=int(given[place]),
        )
        for place, name in enumerate(answers.classes or ())
    ]


def label_table(answers: Answers) -> Table:
    return Table(
        caption=f"Every label of {answers.task}, mode {answers.mode}",
        columns=["Label", "Precision", "Recall", "F1", "Rows", "Predicted"],
        rows=[
            [
                Cell(each.name),
                *map(number, (each.precision, each.recall, each.f1)),
                *map(count, (each.support, each.predicted)),
            ]
            for each in label_scores(answers)
        ],
    )


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


@dataclass(frozen=True, slots=True)
class LengthBin:
    """A task's metric over the rows of some lengths; None where it is undefined."""

    shortest: int
    longest: int
    rows: int
    value: float | None
    interval: Bounds | None


def by_length(answers: Answers) -> list[LengthBin]:
    """The task's metric over rows of similar length, in bins of about equal size."""
    words = word_counts(answers.texts)
    bins = []
    for low, high in _length_bounds(words):
        rows = np.flatnonzero((words >= low) & (words <= high))
        chosen = answers.labels[rows], answers.measured[rows]
        value = measure(answers.metric, *chosen)
        bounds = None if value is None else interval(answers.metric, *chosen, SEED)
        bins.append(LengthBin(low, high, len(rows), value, bounds))
    return bins


def _length_bounds(words: Ints) -> list[tuple[int, int]]:
    """Shortest and longest of each bin; rows of one length share a bin."""
    if not len(words):
        return []
    cuts = np.quantile(words, np.arange(1, LENGTH_BINS) / LENGTH_BINS, method="lower")
    places = np.searchsorted(np.unique(cuts), words, side="left")
    groups = [words[places == place] for place in np.unique(places)]
    return [(int(group.min()), int(group.max())) for group in groups]


def word_counts(columns: Sequence[Sequence[str]]) -> Ints:
    """Words of each row, both sentences of a pair together: [n]."""
    counts = np.array([[len(text.split()) for text in column] for column in columns], np.int64)
    total: Ints = counts.sum(axis=0)
    return total
