"""What is behind a task's metrics: confused classes, wrong rows, and the effect of length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tercet.evaluation.answers import Answers
from tercet.evaluation.bootstrap import interval
from tercet.evaluation.metrics import Bounds, measure
from tercet.evaluation.per_class import class_scores, severity
from tercet.evaluation.presentation import Cell, Table, count, number, sentence_cell

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


def class_table(answers: Answers) -> Table:
    """Precision, recall, F1 and support of each class."""
    return Table(
        caption=f"{answers.task}, mode {answers.mode}: precision, recall and F1 of each class; "
        "support is the number of its rows",
        columns=["Class", "Precision", "Recall", "F1", "Support", "Predicted"],
        rows=[
            [
                Cell(each.name),
                *map(number, (each.precision, each.recall, each.f1)),
                count(each.support),
                count(each.predicted),
            ]
            for each in class_scores(answers)
        ],
    )


def mistake_rows(answers: Answers) -> list[list[Cell]]:
    """The wrong classes with the highest confidence, or the grades furthest off, worst first."""
    predicted, weights, how_wrong = answers.predicted, severity(answers), _how_wrong(answers)
    wrong = np.flatnonzero(weights > 0.0)
    worst = wrong[np.argsort(-weights[wrong], kind="stable")][:MISTAKES]
    return [
        [
            sentence_cell(answers.inputs(row)),
            Cell(answers.task),
            Cell(answers.name(answers.labels[row])),
            Cell(answers.name(predicted[row])),
            Cell("" if answers.places is None else answers.places.name(row)),
            Cell(how_wrong(weight), float(weight)),
        ]
        for row, weight in zip(worst.tolist(), weights[worst], strict=True)
    ]


def _how_wrong(answers: Answers) -> Callable[[float], str]:
    """How the severity of a mistake is written."""
    if answers.classes is None:
        return "off by {:.1f}".format
    if answers.several:
        return f"{{:.0f}} of {len(answers.classes)} labels wrong".format
    return "{:.0%} confident".format


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
