"""Scaling a classifier's outputs to calibrate its probabilities: one or two numbers per head,
fitted on rows that training did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.data.examples import read_examples
from tercet.data.held_out import held_out_rows
from tercet.data.labels import Labels
from tercet.errors import TercetError
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.label_thresholds import choose_label_thresholds
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.progress import Phases, silent_phases
from tercet.specs import Floats, Mode, Scaling, TaskSpec

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
    """The model's info with a scaling for every head of its classifiers, at each of its depths.

    A model is more confident on rows that it was trained on. So scalings are fitted on the training
    rows that the task's `held_out` keeps from training; without them, on half of the dev rows, and
    the suite `tasks` measures calibration on the other half. A shift changes predictions, which dev
    measures, so it is never fitted on dev; nor are the thresholds of tasks with several labels.
    """
    classifiers = [name for name, spec in model.tasks.items() if spec.labels is not None]
    if not classifiers:
        raise TercetError("This model has no classifier to calibrate.")
    info = with_scalings(model, classifiers, data_dir, phases=phases)
    depths = {}
    for layers, known in (info.depths or {}).items():
        own = with_scalings(model.at(layers), classifiers, data_dir, phases=phases)
        fitted = {"scalings": own.scalings, "thresholds": own.thresholds}
        depths[layers] = known.model_copy(update=fitted)
    return info.model_copy(update={"depths": depths or None})


def with_scalings(
    model: Model, tasks: Sequence[str], data_dir: Path, *, phases: Phases = silent_phases
) -> ModelInfo:
    """The model's info with a scaling for every head of these classifiers only."""
    encoded = EncodedTexts(model, phases)
    scalings: dict[str, dict[Mode, Scaling]] = {}
    thresholds: dict[str, dict[Mode, list[float]]] = {}
    for name in tasks:
        rows = _held_out(encoded, name, model.tasks[name], data_dir)
        scalings[name] = _fit(rows, model.tasks[name])
        if rows.from_train and model.tasks[name].multi_label:
            thresholds[name] = _choose(rows, model.tasks[name], scalings[name])
    fitted = {"scalings": scalings, "thresholds": thresholds or None}
    return model.info.model_copy(update=fitted)


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Rows that training did not see.

    outputs: of the heads, by mode [n, outputs]
    labels: [n], or [n, classes] where rows have several
    from_train: whether they are training rows that were held out, not dev rows
    """

    outputs: Mapping[Mode, Floats]
    labels: Labels
    from_train: bool


def _held_out(encoded: EncodedTexts, name: str, spec: TaskSpec, data_dir: Path) -> _HeldOut:
    examples = read_examples(spec, "train" if spec.held_out else "dev", data_dir)
    assert examples.labels is not None
    rows = held_out_rows(len(examples), share=spec.held_out or DEV_SHARE)
    columns = [[texts[row] for row in rows] for texts in examples.texts]
    outputs = {mode: encoded.outputs(name, mode, columns) for mode in spec.predicting_modes}
    return _HeldOut(outputs, examples.labels[rows], spec.held_out > 0.0)


def fit_decisions(
    outputs: Mapping[Mode, Floats], labels: Labels, spec: TaskSpec
) -> tuple[dict[Mode, Scaling], dict[Mode, list[float]]]:
    """The scalings, and thresholds of several labels, for rows that training did not see.

    outputs: of the heads of a classifier, by mode [n, outputs]
    labels: [n], or [n, classes] where rows have several
    """
    rows = _HeldOut(outputs, labels, from_train=True)
    scalings = _fit(rows, spec)
    return scalings, _choose(rows, spec, scalings) if spec.multi_label else {}


def _fit(rows: _HeldOut, spec: TaskSpec) -> dict[Mode, Scaling]:
    if spec.multi_label:
        # Each label of each row is a decision; one temperature fits them all.
        flat = rows.labels.ravel()
        return {mode: fit_scaling(each.reshape(-1, 1), flat) for mode, each in rows.outputs.items()}
    # Dev rows have the class shares of the model's use; training rows may not.
    prior = spec.prior if rows.from_train else None
    return {
        mode: fit_scaling(each, rows.labels, shifted=rows.from_train, prior=prior)
        for mode, each in rows.outputs.items()
    }


def _choose(
    rows: _HeldOut, spec: TaskSpec, scalings: Mapping[Mode, Scaling]
) -> dict[Mode, list[float]]:
    """The thresholds of labels; they change predictions, so they are never chosen on dev."""
    thresholds = {}
    for mode, outputs in rows.outputs.items():
        probabilities = spec.predict(mode, outputs / np.float32(scalings[mode].temperature))
        chosen = choose_label_thresholds(rows.labels, probabilities)
        thresholds[mode] = [round(value, 6) for value in chosen]
    return thresholds
