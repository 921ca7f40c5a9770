"""A task's labels and predictions, taken back out of the document of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.columns import shorten
from tercet.evaluate.metrics import predicted_classes

SHOWN = 600
"""Characters of a text; a report of long documents would be too large."""

Floats = NDArray[np.float64]
Document = Mapping[str, Any]
Texts = Mapping[str, tuple[list[str], ...]]
"""Of each task, the columns of its rows."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model said of a task's rows in one mode.

    classes: names of the classes; None where the task has grades
    labels: class numbers or grades [n]
    predictions: probabilities [n, classes], or grades [n]
    measured: what the figures are of: the predictions, or grades before they are cut to a range
    texts: columns of n sentences each; none where they were not kept
    """

    task: str
    mode: str
    metric: str
    classes: list[str] | None
    labels: Floats
    predictions: Floats
    measured: Floats
    texts: tuple[list[str], ...]

    @property
    def said(self) -> Floats:
        """The likeliest classes, or the grades [n]."""
        if self.classes is None:
            return self.predictions
        return predicted_classes(self.predictions).astype(np.float64)

    @property
    def of_truth(self) -> Floats:
        """The probability of the right class, or the grade [n]."""
        if self.classes is None:
            return self.predictions
        places = self.labels.astype(np.int64)
        return self.predictions[np.arange(len(places)), places]

    @property
    def positive(self) -> Floats | None:
        """Probabilities of class 1 [n], where there are two classes."""
        if self.classes is None or len(self.classes) != 2:
            return None
        return self.predictions[:, 1]

    def name(self, value: float) -> str:
        """What a class is called, or a grade with one digit."""
        return f"{value:.1f}" if self.classes is None else self.classes[int(value)]

    def inputs(self, row: int) -> list[str]:
        """The texts of a row; of a long one the beginning."""
        return [shorten(column[row], SHOWN) for column in self.texts]


def tasks_of(document: Document) -> dict[str, Any]:
    """The tasks that were measured, by name."""
    tasks: dict[str, Any] = document["suites"].get("tasks", {}).get("tasks", {})
    return tasks


def answers_of(document: Document, texts: Texts, task: str) -> list[Answers]:
    """The answers of every mode of a task, the most exact first."""
    block = tasks_of(document)[task]
    every = []
    for mode, found in block["modes"].items():
        predictions = _predictions(found["predictions"], block["classes"])
        uncut = found.get("uncut")
        every.append(
            Answers(
                task=task,
                mode=mode,
                metric=block["metric"],
                classes=block["classes"],
                labels=np.asarray(found["labels"], np.float64),
                predictions=predictions,
                measured=predictions if uncut is None else np.asarray(uncut, np.float64),
                texts=texts.get(task, ()),
            )
        )
    return every


def _predictions(listed: list[Any], classes: list[str] | None) -> Floats:
    found = np.asarray(listed, np.float64)
    # A task without rows has classes all the same.
    return found if classes is None else found.reshape(len(listed), len(classes))
