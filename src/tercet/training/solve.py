"""Heads fitted exactly: the last layer by regression on what the encoder gives now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from tercet.data.table import TaskTable
from tercet.errors import TercetError
from tercet.infer.batches import Rows
from tercet.infer.engine import Engine, inference
from tercet.network.network import Network
from tercet.specs import Floats, Mode, TaskSpec
from tercet.specs.objectives import DistanceSpec
from tercet.training.encoded_rows import EncodedRows
from tercet.training.losses import Losses
from tercet.training.regression import LinearModel, fit_classes, fit_grades

MOST_ROWS = 50_000
"""More rows hardly change a linear model, and take memory."""


@runtime_checkable
class HasLastLayer(Protocol):
    """A head whose last layer is linear."""

    @property
    def last(self) -> nn.Linear: ...
    @property
    def blocks(self) -> list[int]: ...
    def inputs(self, *vectors: Tensor) -> Tensor:
        """What the last layer reads: vectors, each [n, width] -> [n, k]"""
        ...


def solve_heads(losses: Losses, tasks: Sequence[str], *, seed: int) -> None:
    """Set the last layer of the heads of these tasks; the same on every process."""
    _solve_depth(losses, tasks, seed=seed)
    for network in losses.network.all_depths()[1:]:
        _solve_depth(replace(losses, network=network, encoded={}), tasks, seed=seed)


def _solve_depth(losses: Losses, tasks: Sequence[str], *, seed: int) -> None:
    for name in tasks:
        task, table = losses.tasks[name], losses.tables[name]
        rows = np.sort(np.random.default_rng(seed).permutation(len(table))[:MOST_ROWS])
        for mode, spec in task.predicting_modes.items():
            head = losses.network.heads_of(name)[mode]
            if not isinstance(head, HasLastLayer) or spec.shared is not None:
                continue
            inputs = _inputs(losses, name, mode, head, rows)
            _set(head.last, _fit(task, mode, inputs, table, rows, losses, head.blocks, name=name))


def check_solvable(network: Network, tasks: Mapping[str, TaskSpec]) -> None:
    """Raise if a head of these tasks cannot be solved by the objective that it has."""
    for name, task in tasks.items():
        for mode, spec in task.predicting_modes.items():
            fits = spec.shared is not None or spec.prediction.solver is not None
            if not fits and isinstance(network.heads_of(name)[mode], HasLastLayer):
                raise TercetError(
                    f"task `{name}`: objective `{spec.objective.kind}` has no regression to "
                    "`solve` its head by."
                )


def _inputs(losses: Losses, name: str, mode: Mode, head: HasLastLayer, rows: Rows) -> Floats:
    """What the last layer of a head reads for rows of a task, float32 [n, k].

    Of rows that are read in windows it is averaged, which gives the average of their outputs.
    """
    network = losses.network
    if (known := losses.encoded.get((name, mode))) is not None:
        encoded = known.take(rows)
    else:
        engine = Engine(network, losses.template, losses.max_tokens)
        encoded = EncodedRows.of(engine, name, mode, losses.tables[name].take(rows).columns)
    with inference(network, bf16=False):
        tensors = [torch.from_numpy(part).to(network.device) for part in encoded.columns]
        inputs = head.inputs(*tensors).float().cpu().numpy()
    return encoded.averaged(inputs)


def _fit(
    task: TaskSpec,
    mode: Mode,
    inputs: Floats,
    table: TaskTable,
    rows: Rows,
    losses: Losses,
    blocks: Sequence[int],
    *,
    name: str,
) -> LinearModel:
    assert table.labels is not None  # since the task predicts
    labels, objective = table.labels[rows], task.modes[mode].prediction
    if objective.solver == "ridge":
        assert task.range is not None
        targets = task.range
        if isinstance(objective, DistanceSpec) and objective.targets is not None:
            targets = objective.targets
        slope = (targets[1] - targets[0]) / (task.range[1] - task.range[0])
        grades = cast(Floats, (labels - task.range[0]) * slope + targets[0])
        return fit_grades(inputs, grades, blocks=blocks)
    weights = losses.class_weights.get(name)
    model = fit_classes(
        inputs,
        labels,
        outputs=task.outputs(mode),
        blocks=blocks,
        class_weights=None if weights is None else weights.cpu().numpy(),
    )
    # As in training: outputs plus the shift fit the labels.
    return LinearModel(model.weights, model.bias - np.float32(losses.shifts.get(name, 0.0)))


@torch.no_grad()
def _set(layer: nn.Linear, model: LinearModel) -> None:
    layer.weight.copy_(torch.from_numpy(model.weights))
    layer.bias.copy_(torch.from_numpy(model.bias))
