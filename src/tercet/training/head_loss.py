"""The loss of a head's outputs: by labels, by a teacher, and by R-Drop."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.labels import Labels
from tercet.errors import TercetError
from tercet.objectives.base import PredictiveObjective, WeightedObjective
from tercet.specs import Mode, TaskSpec
from tercet.training.batch import Supervision

Targets = NDArray[np.float32]


def head_loss(
    objective: PredictiveObjective,
    task: TaskSpec,
    mode: Mode,
    raw: Tensor,
    supervision: Supervision,
    *,
    total: int,
    shift: float = 0.0,
    weights: Tensor | None = None,
) -> Tensor:
    """The sum of the rows' losses over `total`.

    raw: [n, outputs], or [2n, outputs] where R-Drop encodes rows twice
    supervision: of n rows
    shift: from `prior_shift`; it is added to the outputs that labels are compared with
    weights: from `class_weights` [classes]
    """
    factor = task.modes[mode].r_drop
    learn = partial(_guided_loss, objective, task, raw, shift=shift, weights=weights)
    if factor == 0.0:
        return learn(supervision, total=total)
    twice = Supervision(**{k: torch.cat([t, t]) for k, t in supervision.tensors().items()})
    guided = learn(twice, total=2 * total)
    first, second = raw.chunk(2)
    return guided + factor * objective.disagreement(first, second, total=total)


def prior_shift(labels: Labels, prior: float) -> float:
    """The log-odds of class 1 among labels [n], less those of its prior.

    A head whose outputs fit the labels with this added fits the prior without it (logit adjustment,
    Menon et al., 2021).
    """
    share = float(labels.mean())
    if not 0.0 < share < 1.0:
        raise TercetError("`prior` needs training rows of both classes")
    return math.log(share / (1.0 - share)) - math.log(prior / (1.0 - prior))


def class_weights(task: TaskSpec, labels: Labels) -> NDArray[np.float32]:
    """The weights of a task's classes, float32 [classes]; a class without rows has weight 1.

    labels: class numbers of the training rows [n], or 0 and 1 [n, classes]
    """
    if isinstance(task.class_weights, list):
        return np.array(task.class_weights, np.float32)
    classes = len(task.labels or ())
    if task.multi_label:
        counts = labels.sum(axis=0)
        balanced = (len(labels) - counts) / np.maximum(counts, 1)
    else:
        counts = np.bincount(labels.astype(np.int64), minlength=classes)
        balanced = len(labels) / (classes * np.maximum(counts, 1))
    return np.where((counts > 0) & (balanced > 0.0), balanced, 1.0).astype(np.float32)


def _guided_loss(
    objective: PredictiveObjective,
    task: TaskSpec,
    raw: Tensor,
    supervision: Supervision,
    *,
    total: int,
    shift: float,
    weights: Tensor | None,
) -> Tensor:
    """By labels, a teacher, or both."""
    labels, targets, teacher = supervision.labels, supervision.targets, task.teacher
    if teacher is None:
        assert labels is not None
        return _label_loss(objective, raw.float() + shift, labels, total=total, weights=weights)
    assert targets is not None
    taught = teacher.weight * objective.teacher_loss(
        raw, targets, temperature=teacher.temperature, total=total
    )
    if labels is None:
        return taught
    learnt = _label_loss(objective, raw.float() + shift, labels, total=total, weights=weights)
    return taught + (1.0 - teacher.weight) * learnt


def _label_loss(
    objective: PredictiveObjective,
    raw: Tensor,
    labels: Tensor,
    *,
    total: int,
    weights: Tensor | None,
) -> Tensor:
    if weights is None:
        return objective.loss(raw, labels, total=total)
    assert isinstance(objective, WeightedObjective)  # since the task has class weights
    return objective.loss(raw, labels, total=total, weights=weights)
