"""A model's predictions for the rows of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.errors import shorten
from tercet.evaluation.calibration import Calibration
from tercet.evaluation.metrics import Estimate, predicted_classes
from tercet.evaluation.presentation import SHOWN

DECIMALS = 4
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Predictions of a task in one mode, and their metrics.

    metric: the task's main metric
    classes: names of the classes; None for grades
    labels: class numbers or grades [n]
    predictions: probabilities [n, classes], or grades [n]
    unclipped: the outputs of a graded head [n]; the grades are these, clipped to the task's range
    texts: columns of n sentences each; empty where they are unknown
    calibration: of classifiers
    """

    task: str
    mode: str
    metric: str
    metrics: dict[str, Estimate]
    classes: list[str] | None
    labels: NDArray[Any]
    predictions: Floats
    unclipped: NDArray[Any] | None = None
    texts: tuple[list[str], ...] = ()
    calibration: Calibration | None = None

    @property
    def measured(self) -> NDArray[Any]:
        """What the metrics are computed from."""
        return self.predictions if self.unclipped is None else self.unclipped

    @property
    def predicted(self) -> Floats:
        """The likeliest classes, or the grades [n]."""
        if self.classes is None:
            return self.predictions
        return predicted_classes(self.predictions).astype(np.float64)

    @property
    def of_label(self) -> Floats:
        """The probability of the right class, or the grade [n]."""
        if self.classes is None:
            return self.predictions
        return self.predictions[np.arange(len(self.labels)), self.labels.astype(np.int64)]

    @property
    def positive(self) -> Floats | None:
        """Probabilities of class 1 [n], where there are two classes."""
        if self.classes is None or len(self.classes) != 2:
            return None
        return self.predictions[:, 1]

    def name(self, value: float) -> str:
        """The name of a class, or a grade with one decimal."""
        return f"{value:.1f}" if self.classes is None else self.classes[int(value)]

    def inputs(self, row: int) -> list[str]:
        """The texts of a row, the long ones shortened."""
        return [shorten(column[row], SHOWN) for column in self.texts]

    def to_json(self) -> dict[str, Any]:
        return {
            "metrics": {metric: value.to_json() for metric, value in self.metrics.items()},
            "labels": rounded(self.labels),
            "predictions": rounded(self.predictions),
            "uncut": None if self.unclipped is None else rounded(self.unclipped),
            "calibration": self.calibration.to_json() if self.calibration else None,
        }


def rounded(values: NDArray[Any]) -> list[Any]:
    """Numbers for JSON: whole numbers as they are, others with a few decimals."""
    if values.dtype.kind in "iu":
        return list(values.tolist())
    return list(values.astype(np.float64).round(DECIMALS).tolist())
