"""The loss of a head's outputs: by labels, by a teacher, and by R-Drop."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.labels import Labels
from tercet.errors import TercetError
from tercet.objectives.base import PredictiveObjective
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
) -> Tensor:
    """The sum of the rows' losses over `total`.

    raw: [n, outputs], or [2n, outputs] where R-Drop encodes rows twice
    supervision: of n rows
    shift: from `prior_shift`; it is added to the outputs that labels are compared with
    """
    factor = task.modes[mode].r_drop
    if factor == 0.0:
        return _guided_loss(objective, task, raw, supervision, total=total, shift=shift)
    twice = Supervision(**{k: torch.cat([t, t]) for k, t in supervision.tensors().items()})
    guided = _guided_loss(objective, task, raw, twice, total=2 * total, shift=shift)
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


def _guided_loss(
    objective: PredictiveObjective,
    task: TaskSpec,
    raw: Tensor,
    supervision: Supervision,
    *,
    total: int,
    shift: float,
) -> Tensor:
    """By labels, a teacher, or both."""
    labels, targets, teacher = supervision.labels, supervision.targets, task.teacher
    if teacher is None:
        assert labels is not None
        return objective.loss(raw.float() + shift, labels, total=total)
    assert targets is not None
    taught = teacher.weight * objective.teacher_loss(
        raw, targets, temperature=teacher.temperature, total=total
    )
    if labels is None:
        return taught
    learnt = objective.loss(raw.float() + shift, labels, total=total)
    return taught + (1.0 - teacher.weight) * learnt
