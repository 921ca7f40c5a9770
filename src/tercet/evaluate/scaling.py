"""Scaling a classifier's outputs, so that its probabilities come true: one or two numbers a head,
fitted on rows that training did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tercet.data.examples import read_examples
from tercet.data.held_out import held_out_rows
from tercet.errors import TercetError
from tercet.evaluate.corpus import Corpus, Tell
from tercet.evaluate.results import predicting_modes
from tercet.folders.model_card import ModelInfo
from tercet.model import Model
from tercet.specs import Mode, Scaling, TaskSpec

BOUNDS = (0.05, 20.0)
"""Fits stay between them: where all rows are wrong, ever greater temperatures fit better."""
MOST_SHIFT = 10.0
DEV_SHARE = 0.5
"""Of dev rows, where training left none of its own out: scalings are judged on the others."""


def fit_scaling(
    outputs: ArrayLike, labels: ArrayLike, *, shifted: bool = False, prior: float | None = None
) -> Scaling:
    """The scaling with the least negative log-likelihood of the labels.

    Labels count as a little less than certain: a few rows that are all right, or all of one class,
    say little of others.

    outputs: a head's, [n, classes], or [n, 1] for class 1
    labels: class numbers [n]
    shifted: whether outputs [n, 1] may be shifted too (Platt, 1999); targets are then as his
    prior: of class 1, where its share of these labels is another: rows then count accordingly
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
    targets = _less_certain(certain) if shifted else _with_an_open_one(certain)
    weights = np.ones(len(classes)) if prior is None else _as_in(prior, classes)
    weights /= weights.sum()

    def loss(found: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """And its gradient by the logarithm of the temperature and by the shift."""
        divided = raw / np.exp(found[0])
        scaled = divided.copy()
        scaled[:, -1] += found[1]
        likely = log_softmax(scaled, axis=1)
        away = np.exp(likely) - targets
        slopes = [-(away * divided).sum(axis=1), away[:, -1]]
        return float(-weights @ (targets * likely).sum(axis=1)), np.stack(slopes) @ weights

    most = MOST_SHIFT if shifted else 0.0
    bounds = [tuple(np.log(BOUNDS)), (-most, most)]
    exactly = {"ftol": 0.0, "gtol": 1e-12}
    found = minimize(
        loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds, options=exactly
    ).x
    temperature = float(np.clip(np.exp(found[0]), *BOUNDS))
    return Scaling(temperature=temperature, shift=float(found[1]) if shifted else 0.0)


def _less_certain(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of n rows of a class n + 1 of n + 2 count as its own; targets [n, 2]."""
    rows = targets.sum(axis=0)
    own, other = (rows + 1) / (rows + 2), 1 / (rows + 2)
    softened: NDArray[np.float64] = targets * own + (1 - targets) * other[::-1]
    return softened


def _with_an_open_one(targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """As if one row more might have been of any class, spread over all; targets [n, classes]."""
    rows, classes = targets.shape
    opened: NDArray[np.float64] = (targets * rows + 1 / classes) / (rows + 1)
    return opened


def _as_in(prior: float, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much rows of two classes [n] count where class 1 has this prior."""
    counts = np.bincount(classes, minlength=2)
    return (np.array([1.0 - prior, prior]) / np.maximum(counts, 1))[classes]


def judged_rows(task: TaskSpec, count: int) -> NDArray[np.int64]:
    """The rows of dev on which a scaling of a task is judged: those it was not fitted on."""
    rows = np.arange(count)
    fitted = held_out_rows(count, share=DEV_SHARE) if not task.held_out and count else rows[:0]
    return np.setdiff1d(rows, fitted)


def calibrate(model: Model, data_dir: Path, *, tell: Tell | None = None) -> ModelInfo:
    """The model's facts with a scaling for every head of its classifiers.

    A model is surer of rows that it was trained on than of others. So scalings are fitted on the
    training rows that the task's `held_out` kept from training; where it kept none, on half of
    the dev rows, and the suite `tasks` judges them on the other half. A shift changes what is
    predicted, so dev, which measures that, is never asked for one.
    """
    classifiers = [name for name, spec in model.tasks.items() if spec.labels is not None]
    if not classifiers:
        raise TercetError("This model has no classifier to calibrate.")
    return with_scalings(model, classifiers, data_dir, tell=tell)


def with_scalings(
    model: Model, tasks: Sequence[str], data_dir: Path, *, tell: Tell | None = None
) -> ModelInfo:
    """The model's facts with a scaling for every head of these classifiers alone."""
    corpus = Corpus(model, tell)
    fitted = {name: _fit(corpus, name, model.tasks[name], data_dir) for name in tasks}
    return model.info.model_copy(update={"scalings": fitted})


def _fit(corpus: Corpus, name: str, spec: TaskSpec, data_dir: Path) -> Mapping[Mode, Scaling]:
    examples = read_examples(spec, "train" if spec.held_out else "dev", data_dir)
    assert examples.labels is not None
    rows = held_out_rows(len(examples), share=spec.held_out or DEV_SHARE)
    columns = [[texts[row] for row in rows] for texts in examples.texts]
    labels = examples.labels[rows]
    # Rows of dev come as those where the model will be used; training rows need not.
    apart = spec.held_out > 0.0
    return {
        mode: fit_scaling(
            corpus.outputs(name, mode, columns),
            labels,
            shifted=apart,
            prior=spec.prior if apart else None,
        )
        for mode in predicting_modes(spec)
    }
