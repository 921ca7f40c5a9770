"""What a head's outputs cost: against labels, against a teacher, and against themselves."""

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

Targets = NDArray[np.float32]


def with_targets(labels: Labels | None, targets: Targets | None) -> Tensor | None:
    """Labels [n] and a teacher's targets [n, k] as one tensor, which travels as labels do.

    [n] without targets; else fp32 [n, 1 + k], or [n, k] where there are no labels.
    """
    if targets is None:
        return None if labels is None else torch.from_numpy(labels)
    if labels is None:
        return torch.from_numpy(targets)
    return torch.from_numpy(np.column_stack([labels.astype(np.float32), targets]))


def head_loss(
    objective: PredictiveObjective,
    task: TaskSpec,
    mode: Mode,
    raw: Tensor,
    labels: Tensor,
    *,
    total: int,
    shift: float = 0.0,
) -> Tensor:
    """The sum of the rows' losses over `total`.

    raw: [n, outputs], or [2n, outputs] where R-Drop sends rows through twice
    labels: what `with_targets` made of n rows
    shift: what `prior_shift` found; labels are compared with outputs that it is added to
    """
    factor = task.modes[mode].r_drop
    if factor == 0.0:
        return _guided_loss(objective, task, raw, labels, total=total, shift=shift)
    twice = torch.cat([labels, labels])
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
    labels: Tensor,
    *,
    total: int,
    shift: float,
) -> Tensor:
    """By labels, a teacher, or both."""
    teacher = task.teacher
    if teacher is None:
        return objective.loss(raw.float() + shift, labels, total=total)
    targets = labels[:, 1:] if task.learns_labels else labels
    taught = teacher.weight * objective.teacher_loss(
        raw, targets, temperature=teacher.temperature, total=total
    )
    if not task.learns_labels:
        return taught
    own = labels[:, 0].long() if task.labels is not None else labels[:, 0]
    learnt = objective.loss(raw.float() + shift, own, total=total)
    return taught + (1.0 - teacher.weight) * learnt
