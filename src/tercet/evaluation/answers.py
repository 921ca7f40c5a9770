"""A model's predictions for the rows of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import shorten
from tercet.evaluation.calibration import Calibration
from tercet.evaluation.metrics import Bounds, Estimate, has_several_labels, predicted_classes
from tercet.evaluation.presentation import SHOWN
from tercet.specs import decisions
from tercet.specs.predictions import EVEN

DECIMALS = 4
NO_LABEL = "none"
"""What a row without any of several labels is shown as."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlaces:
    """Where n rows come from.

    files: the names of the files
    units: what the lines of each file count: `line` or `row`
    sources: int32 [n], each row's file as an index into `files`
    lines: int64 [n], each row's line in its file
    ids: each row's id, empty where its file has no column of ids
    """

    files: Sequence[str]
    units: Sequence[str]
    sources: NDArray[np.int32]
    lines: NDArray[np.int64]
    ids: Sequence[str]

    def file(self, row: int) -> str:
        return self.files[int(self.sources[row])]

    def name(self, row: int) -> str:
        """The id of a row, else its file and line."""
        unit = self.units[int(self.sources[row])]
        return self.ids[row] or f"{self.file(row)} {unit} {self.lines[row]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Predictions of a task in one mode, and their metrics.

    metric: the task's main metric
    classes: names of the classes; None for grades
    labels: class numbers or grades [n], or 0 and 1 [n, classes] where rows have several labels
    predictions: probabilities [n, classes], or grades [n]
    thresholds: of each label the least probability at which it is predicted, where rows have
        several labels; default: one half
    unclipped: the outputs of a graded head [n]; the grades are these, clipped to the task's range
    texts: columns of n sentences each; empty where they are unknown
    calibration: of classifiers
    range: the lowest and highest grade, where the task has one
    places: where the rows come from
    unseen: the metrics of the rows that were not trained on, where the model has a sketch
    """

    task: str
    mode: str
    metric: str
    metrics: dict[str, Estimate]
    classes: list[str] | None
    labels: NDArray[Any]
    predictions: Floats
    thresholds: Sequence[float] | None = None
    unclipped: NDArray[Any] | None = None
    texts: tuple[list[str], ...] = ()
    calibration: Calibration | None = None
    range: Bounds | None = None
    places: RowPlaces | None = None
    unseen: dict[str, Estimate] | None = None

    @property
    def span(self) -> Bounds:
        """The range of grades, or that of the labels where the task has none."""
        if self.range is not None or not len(self.labels):
            return self.range or (0.0, 1.0)
        return float(self.labels.min()), float(self.labels.max())

    @property
    def several(self) -> bool:
        """Whether a row has several labels."""
        return has_several_labels(self.labels)

    @property
    def measured(self) -> NDArray[Any]:
        """What the metrics are computed from."""
        if self.several:
            return self.predicted
        return self.predictions if self.unclipped is None else self.unclipped

    @property
    def predicted(self) -> Floats:
        """The likeliest classes, or the grades [n]; 0 and 1 [n, classes] for several labels."""
        if self.classes is None:
            return self.predictions
        if self.several:
            chosen = decisions(self.predictions.astype(np.float32), self.thresholds)
            return chosen.astype(np.float64)
        return predicted_classes(self.predictions).astype(np.float64)

    @property
    def of_label(self) -> Floats:
        """The probability of the right class, or the grade [n]; the mean over several labels."""
        if self.classes is None:
            return self.predictions
        if self.several:
            right: Floats = np.where(self.labels, self.predictions, 1.0 - self.predictions)
            means: Floats = right.mean(axis=1)
            return means
        return self.predictions[np.arange(len(self.labels)), self.labels.astype(np.int64)]

    @property
    def errors(self) -> Floats:
        """How far predictions are from labels [n]; 0 is right.

        Distances of grades or class numbers, or how many of several labels are wrong.
        """
        distances: Floats = np.abs(self.predicted - self.labels)
        return distances.sum(axis=1) if self.several else distances

    @property
    def positive(self) -> Floats | None:
        """Probabilities of class 1 [n], where a row has one of two classes."""
        if self.classes is None or len(self.classes) != 2 or self.several:
            return None
        return self.predictions[:, 1]

    def name(self, value: Any) -> str:
        """The name of a class, a grade with one decimal, or the names of a row's labels.

        value: a row of `labels` or `predicted`
        """
        if self.classes is None:
            return f"{value:.1f}"
        if self.several:
            names = [self.classes[place] for place in np.flatnonzero(value)]
            return ", ".join(names) or NO_LABEL
        return self.classes[int(value)]

    @property
    def _thresholds(self) -> list[float]:
        return list(self.thresholds or [EVEN] * len(self.classes or ()))

    def inputs(self, row: int) -> list[str]:
        """The texts of a row, the long ones shortened."""
        return [shorten(column[row], SHOWN) for column in self.texts]

    def to_json(self) -> dict[str, Any]:
        return {
            "metrics": _to_json(self.metrics),
            "without_seen_rows": None if self.unseen is None else _to_json(self.unseen),
            "labels": rounded(self.labels),
            "predictions": rounded(self.predictions),
            **({"thresholds": self._thresholds} if self.several else {}),
            "uncut": None if self.unclipped is None else rounded(self.unclipped),
            "calibration": self.calibration.to_json() if self.calibration else None,
        }


def _to_json(metrics: dict[str, Estimate]) -> dict[str, Any]:
    return {metric: value.to_json() for metric, value in metrics.items()}


def rounded(values: NDArray[Any]) -> list[Any]:
    """Numbers for JSON: whole numbers as they are, others with a few decimals."""
    if values.dtype.kind in "iu":
        return list(values.tolist())
    return list(values.astype(np.float64).round(DECIMALS).tolist())
