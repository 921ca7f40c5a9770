"""What a head's outputs cost: against labels, against a teacher, and against themselves."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.labels import Labels
from tercet.objectives import PredictiveObjective
from tercet.specs import Gear, TaskSpec

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
    gear: Gear,
    raw: Tensor,
    labels: Tensor,
    *,
    total: int,
) -> Tensor:
    """The sum of the rows' losses over `total`.

    raw: [n, outputs], or [2n, outputs] where R-Drop sends rows through twice
    labels: what `with_targets` made of n rows
    """
    factor = task.gears[gear].r_drop
    if factor == 0.0:
        return _guided_loss(objective, task, raw, labels, total=total)
    guided = _guided_loss(objective, task, raw, torch.cat([labels, labels]), total=2 * total)
    first, second = raw.chunk(2)
    return guided + factor * objective.disagreement(first, second, total=total)


def _guided_loss(
    objective: PredictiveObjective, task: TaskSpec, raw: Tensor, labels: Tensor, *, total: int
) -> Tensor:
    """By labels, a teacher, or both."""
    teacher = task.teacher
    if teacher is None:
        return objective.loss(raw, labels, total=total)
    targets = labels[:, 1:] if task.learns_labels else labels
    taught = teacher.weight * objective.teacher_loss(
        raw, targets, temperature=teacher.temperature, total=total
    )
    if not task.learns_labels:
        return taught
    own = labels[:, 0].long() if task.labels is not None else labels[:, 0]
    return taught + (1.0 - teacher.weight) * objective.loss(raw, own, total=total)
