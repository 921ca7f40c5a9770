"""Scaling a classifier's outputs to calibrate its probabilities: one or two numbers per head,
fitted on rows that training did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.data.examples import read_examples
from tercet.data.held_out import held_out_rows
from tercet.errors import TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.progress import Phases, silent_phases
from tercet.specs import Mode, Scaling, TaskSpec

BOUNDS = (0.05, 20.0)
"""Of temperatures: where all rows are wrong, a greater one always fits better."""
MOST_SHIFT = 10.0
DEV_SHARE = 0.5
"""Share of dev rows to fit on, where training held none out; the others judge the scaling."""


def fit_scaling(
    outputs: ArrayLike, labels: ArrayLike, *, shifted: bool = False, prior: float | None = None
) -> Scaling:
    """The scaling with the least negative log-likelihood of the labels.

    Labels are smoothed: a few rows that are all right, or all of one class, prove little about
    others.

    outputs: a head's, [n, classes], or [n, 1] for class 1
    labels: class numbers [n]
    shifted: whether outputs [n, 1] may be shifted too, with the targets of Platt (1999)
    prior: share of class 1 where the model is used, if it differs here; rows are weighted by it
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    raw, classes = np.asarray(outputs, np.float64), np.asarray(labels, np.int64)
    if not len(classes):
        raise TercetError("a scaling needs rows to be fitted on")
    shifted = shifted and raw.shape[1] == 1
    if raw.shape[1] == 1:
        raw = np.concatenate([np.zeros_like(raw), raw], axis=1)
    certain = np.eye(raw.shape[1])[classes]
    targets = _platt_targets(certain) if shifted else _with_uniform_row(certain)
    weights = np.ones(len(classes)) if prior is None else _prior_weights(prior, classes)
    weights /= weights.sum()

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The loss, and its gradient by the logarithm of the temperature and by the shift."""
        divided = raw / np.exp(parameters[0])
        scaled = divided.copy()
        scaled[:, -1] += parameters[1]
        likely = log_softmax(scaled, axis=1)
        away = np.exp(likely) - targets
        slopes = [-(away * divided).sum(axis=1), away[:, -1]]
        return float(-weights @ (targets * likely).sum(axis=1)), np.stack(slopes) @ weights

    most = MOST_SHIFT if shifted else 0.0
    bounds = [tuple(np.log(BOUNDS)), (-most, most)]
    options = {"ftol": 0.0, "gtol": 1e-12}
    best = minimize(
        loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    temperature = float(np.clip(np.exp(best[0]), *BOUNDS))
    return Scaling(temperature=temperature, shift=float(best[1]) if shifted else 0.0)


def _platt_targets(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n + 1) / (n + 2) for a class of n rows; targets [n, 2]."""
    rows = targets.sum(axis=0)
    own, other = (rows + 1) / (rows + 2), 1 / (rows + 2)
    softened: NDArray[np.float64] = targets * own + (1 - targets) * other[::-1]
    return softened


def _with_uniform_row(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """As if there was one more row, equally of all classes; targets [n, classes]."""
    rows, classes = targets.shape
    smoothed: NDArray[np.float64] = (targets * rows + 1 / classes) / (rows + 1)
    return smoothed


def _prior_weights(prior: float, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weights of rows of two classes [n] that give class 1 this prior."""
    counts = np.bincount(classes, minlength=2)
    return (np.array([1.0 - prior, prior]) / np.maximum(counts, 1))[classes]


def judged_rows(task: TaskSpec, count: int) -> NDArray[np.int64]:
    """The dev rows that a scaling of a task was not fitted on."""
    rows = np.arange(count)
    fitted = held_out_rows(count, share=DEV_SHARE) if not task.held_out and count else rows[:0]
    return np.setdiff1d(rows, fitted)


def calibrate(model: Model, data_dir: Path, *, phases: Phases = silent_phases) -> ModelInfo:
    """The model's info with a scaling for every head of its classifiers.

    A model is more confident on rows that it was trained on. So scalings are fitted on the training
    rows that the task's `held_out` keeps from training; without them, on half of the dev rows, and
    the suite `tasks` measures calibration on the other half. A shift changes predictions, which dev
    measures, so it is never fitted on dev.
    """
    classifiers = [name for name, spec in model.tasks.items() if spec.labels is not None]
    if not classifiers:
        raise TercetError("This model has no classifier to calibrate.")
    return with_scalings(model, classifiers, data_dir, phases=phases)


def with_scalings(
    model: Model, tasks: Sequence[str], data_dir: Path, *, phases: Phases = silent_phases
) -> ModelInfo:
    """The model's info with a scaling for every head of these classifiers only."""
    encoded = EncodedTexts(model, phases)
    fitted = {name: _fit(encoded, name, model.tasks[name], data_dir) for name in tasks}
    return model.info.model_copy(update={"scalings": fitted})


def _fit(
    encoded: EncodedTexts, name: str, spec: TaskSpec, data_dir: Path
) -> Mapping[Mode, Scaling]:
    examples = read_examples(spec, "train" if spec.held_out else "dev", data_dir)
    assert examples.labels is not None
    rows = held_out_rows(len(examples), share=spec.held_out or DEV_SHARE)
    columns = [[texts[row] for row in rows] for texts in examples.texts]
    labels = examples.labels[rows]
    # Dev rows have the class shares of the model's use; training rows may not.
    from_train = spec.held_out > 0.0
    return {
        mode: fit_scaling(
            encoded.outputs(name, mode, columns),
            labels,
            shifted=from_train,
            prior=spec.prior if from_train else None,
        )
        for mode in spec.predicting_modes
    }
