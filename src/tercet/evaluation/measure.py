"""Outputs of a head for rows with labels, measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tercet.data.labels import Labels
from tercet.evaluation.answers import Answers, RowPlaces
from tercet.evaluation.bootstrap import estimates
from tercet.evaluation.calibration import class_probabilities, measure_calibration
from tercet.evaluation.contamination import Contamination
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.scoring import measured, metrics_of
from tercet.specs import Floats, Mode, Scaling, TaskSpec

SEED = 11711


def measure_outputs(
    name: str,
    mode: Mode,
    spec: TaskSpec,
    outputs: Floats,
    labels: Labels,
    *,
    scaling: Scaling | None = None,
    thresholds: Sequence[float] | None = None,
    judged: NDArray[np.int64] | None = None,
    texts: tuple[list[str], ...] = (),
    places: RowPlaces | None = None,
    found: Contamination | None = None,
) -> Answers:
    """The predictions of a task in one mode, with all metrics and their intervals.

    outputs: of the head [n, outputs], before scaling
    labels: [n], or [n, classes] where rows have several
    judged: the rows that calibration is measured on; default: all
    found: which rows the model has seen, where that is known
    """
    predicted = spec.predict(mode, (scaling or Scaling()).apply(outputs))
    values = measured(spec, outputs, predicted, thresholds)
    calibration = None
    if spec.labels is not None:
        rows = np.arange(len(labels)) if judged is None else judged
        calibration = measure_calibration(labels[rows], predicted[rows], scaling=scaling)
    metrics = _estimates(spec, labels, values)
    unseen = None
    if found is not None:
        fresh = found.fresh
        unseen = found.measure(metrics, lambda: _estimates(spec, labels[fresh], values[fresh]))
    return Answers(
        task=name,
        mode=mode,
        metric=spec.chosen_metric,
        metrics=metrics,
        unseen=unseen,
        classes=spec.labels,
        labels=labels,
        predictions=np.asarray(
            predicted if spec.labels is None else class_probabilities(predicted), np.float64
        ),
        thresholds=thresholds,
        unclipped=values if spec.labels is None and values is not predicted else None,
        texts=texts,
        calibration=calibration,
        range=spec.range,
        places=places,
    )


def _estimates(spec: TaskSpec, labels: Labels, values: Floats) -> dict[str, Estimate]:
    return estimates(metrics_of(spec, labels, values), labels, values, SEED)
