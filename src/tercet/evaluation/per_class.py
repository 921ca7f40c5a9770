"""What a classifier decides, class by class: precision, recall, F1 and mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.evaluation.answers import Answers, Floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClassScores:
    """The scores of one class.

    precision: None where the class is never predicted
    recall: None where no row is of the class
    f1: None where both are None
    support: rows of the class
    predicted: rows that are predicted to be of the class
    """

    name: str
    precision: float | None
    recall: float | None
    f1: float | None
    support: int
    predicted: int


def membership(answers: Answers, values: NDArray[Any]) -> Bools:
    """Whether each row is of each class [n, classes]; values: `labels` or `predicted`."""
    assert answers.classes is not None
    if answers.several:
        return values > 0
    members: Bools = values[:, None] == np.arange(len(answers.classes))
    return members


def class_scores(answers: Answers) -> list[ClassScores]:
    """The scores of every class of a classifier, in the order of the classes."""
    assert answers.classes is not None
    truth, decided = (membership(answers, each) for each in (answers.labels, answers.predicted))
    right = (truth & decided).sum(axis=0).tolist()
    support, predicted = truth.sum(axis=0).tolist(), decided.sum(axis=0).tolist()
    return [
        ClassScores(
            name=name,
            precision=_share(right[place], predicted[place]),
            recall=_share(right[place], support[place]),
            f1=_share(2 * right[place], predicted[place] + support[place]),
            support=support[place],
            predicted=predicted[place],
        )
        for place, name in enumerate(answers.classes)
    ]


def severity(answers: Answers) -> Floats:
    """How bad each mistake is [n]; 0 where the prediction is right.

    The distance of a grade; how many of several labels are wrong; the confidence in a wrong class.
    """
    if answers.classes is None or answers.several:
        return answers.errors
    weights: Floats = answers.predictions.max(axis=1, initial=0.0) * (answers.errors > 0.0)
    return weights


def majority_accuracy(answers: Answers) -> float | None:
    """The accuracy of always predicting the most frequent class; None for other main metrics."""
    if answers.metric != "accuracy" or not len(answers.labels):
        return None
    return float(membership(answers, answers.labels).mean(axis=0).max())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
