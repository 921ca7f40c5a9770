"""Logistic regressions on the same vectors, fitted together, as cross-validation needs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.specs import Floats

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
TOLERANCE = 1e-5
"""A fit ends where no part of the gradient of the mean loss is larger."""
STEPS = 500
BLOCK = 2048
"""Rows at a time, so that intermediate results stay in the processor's cache."""


class Regressions:
    """One regression for every set of rows and every C, with scikit-learn's objective: C times the
    loss of the rows, plus half the squared length of the weights.

    A step divides the gradient by a bound of the second derivative (Böhning, 1992). On the
    principal axes of all vectors that bound is a number for each axis, valid for any set of rows:
    a step of all fits is two matrix products.
    """

    def __init__(
        self, vectors: Floats, labels: Ints, *, used: Bools, penalties: Sequence[float]
    ) -> None:
        """vectors [n, width], class numbers [n], and the sets: which rows each has [n, sets]"""
        rows = torch.from_numpy(vectors)
        self._mean = rows.mean(dim=0)
        centred = (rows - self._mean).double()
        spread, axes = torch.linalg.eigh(centred.T @ centred)
        self._axes = axes.float()
        # The last axis is the intercept, which has no penalty.
        shrink = torch.tensor(penalties).reciprocal().expand(len(spread) + 1, -1).clone()
        shrink[-1] = 0.0
        outputs = int(labels.max()) + 1 if labels.max() > 1 else 1
        curved = torch.cat([spread.clamp(min=0.0).float(), torch.tensor([float(len(labels))])])
        bound = (0.25 if outputs == 1 else 0.5) * curved[:, None] + shrink
        self._weights = _fit(
            self._rotated(vectors),
            _targets(labels, outputs),
            used=torch.from_numpy(used).float(),
            shrink=shrink[:, None, :, None],
            bound=bound[:, None, :, None],
        )

    def predict(self, vectors: Floats) -> Ints:
        """The classes of vectors [m, width] by each set and C: [m, sets, penalties]."""
        weights = self._weights
        classes = np.empty((len(vectors), *weights.shape[1:3]), np.int64)
        for start in range(0, len(vectors), BLOCK):
            block = slice(start, start + BLOCK)
            scores = _scores(self._rotated(vectors[block]), weights)
            chosen = scores[..., 0] > 0.0 if scores.shape[-1] == 1 else scores.argmax(dim=-1)
            classes[block] = chosen.numpy()
        return classes

    def _rotated(self, vectors: Floats) -> Tensor:
        """vectors [m, width] -> coordinates on the axes, and 1 for the intercept: [m, width + 1]"""
        places = (torch.from_numpy(vectors) - self._mean) @ self._axes
        return torch.cat([places, torch.ones(len(places), 1)], dim=1)


def _targets(labels: Ints, outputs: int) -> Tensor:
    """class numbers [n] -> [n, outputs]"""
    classes = torch.from_numpy(labels)
    if outputs == 1:
        return classes.float()[:, None]
    return torch.nn.functional.one_hot(classes, outputs).float()


def _fit(rows: Tensor, targets: Tensor, *, used: Tensor, shrink: Tensor, bound: Tensor) -> Tensor:
    """Weights [axes, sets, penalties, outputs].

    rows [n, axes], targets [n, outputs], used [n, sets]; shrink and bound [axes, 1, penalties, 1]
    """
    shape = rows.shape[1], used.shape[1], bound.shape[2], targets.shape[1]
    weights = ahead = torch.zeros(shape)
    pace = torch.ones(1, *shape[1:3], 1)
    for _ in range(STEPS):
        gradient = _gradient(rows, targets, used, ahead) + shrink * ahead
        if float(gradient.abs().max()) < TOLERANCE * len(rows):
            break
        reached = ahead - gradient / bound
        moved = reached - weights
        # Nesterov momentum; a fit whose momentum points uphill restarts it.
        uphill = (gradient * moved).sum(dim=(0, 3), keepdim=True) > 0.0
        pace = torch.where(uphill, 1.0, pace)
        faster = (1.0 + (1.0 + 4.0 * pace**2).sqrt()) / 2.0
        ahead = reached + (pace - 1.0) / faster * moved
        weights, pace = reached, faster
    return ahead


def _gradient(rows: Tensor, targets: Tensor, used: Tensor, weights: Tensor) -> Tensor:
    """The gradient of the summed log-loss of the rows that each set uses."""
    gradient = torch.zeros_like(weights).flatten(1)
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        scores = _scores(rows[block], weights)
        likely = scores.sigmoid_() if scores.shape[-1] == 1 else scores.softmax(dim=-1)
        wrong = likely.sub_(targets[block, None, None]).mul_(used[block, :, None, None])
        gradient.addmm_(rows[block].T, wrong.flatten(1))
    return gradient.view_as(weights)


def _scores(rows: Tensor, weights: Tensor) -> Tensor:
    """rows [m, axes], weights [axes, sets, penalties, outputs] -> [m, sets, penalties, outputs]"""
    return (rows @ weights.flatten(1)).view(len(rows), *weights.shape[1:])
