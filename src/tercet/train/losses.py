"""The loss of one task on this process's share of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.table import TaskTable
from tercet.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Gear, TaskSpec
from tercet.text.template import Template
from tercet.text.tokens import concatenate
from tercet.train.distributed import World


@dataclass(frozen=True, slots=True)
class Losses:
    """Everything that a row's way from the table to its loss needs."""

    network: Network
    tasks: Mapping[str, TaskSpec]
    tables: Mapping[str, TaskTable]
    template: Template
    max_tokens: int
    world: World

    def loss(self, task: str, rows: NDArray[np.int64], *, total: int) -> Tensor:
        """The sum over this process's rows and the task's gears, divided by `total`.

        rows: of the batch over all processes
        total: rows of the step over all processes, so that losses and gradients add up
        """
        gears = self.tasks[task].gears
        parts = [self._gear_loss(task, gear, rows, total=total) for gear in gears]
        return torch.stack(parts).sum()

    def _gear_loss(self, task: str, gear: Gear, rows: NDArray[np.int64], *, total: int) -> Tensor:
        bounds = self.world.bounds(len(rows))
        first, last = bounds[self.world.rank], bounds[self.world.rank + 1]
        own = rows[first:last]
        if (task, gear) in self.network.vector_objectives:
            return self._vector_loss(task, gear, own, rows=len(rows), first=first, total=total)
        if not len(own):
            return torch.zeros((), device=self.world.device, requires_grad=True)
        raw = self.network.outputs(task, gear, self._tokens(task, gear, own))
        labels = self.tables[task].labels
        assert labels is not None
        wanted = torch.from_numpy(labels[own]).to(self.world.device, non_blocking=True)
        return self.network.objectives[task, gear].loss(raw, wanted, total=total)

    def _vector_loss(
        self, task: str, gear: Gear, own: NDArray[np.int64], *, rows: int, first: int, total: int
    ) -> Tensor:
        columns = self._columns(task, gear, own)
        candidates = self.world.gather(columns[1:], rows=rows)
        objective = self.network.vector_objectives[task, gear]
        return objective.loss(columns, candidates=candidates, first=first, total=total)

    def _columns(self, task: str, gear: Gear, own: NDArray[np.int64]) -> tuple[Tensor, ...]:
        if len(own):
            return self.network.columns(self._tokens(task, gear, own), rows=len(own))
        # A process without rows still takes part in gathering the others'.
        count = 2 if self._is_twice(task, gear) else len(self.tables[task].columns)
        width = self.network.encoder.config.width
        empty = torch.zeros(0, width, device=self.world.device, requires_grad=True)
        return (empty,) * count

    def _tokens(self, task: str, gear: Gear, own: NDArray[np.int64]) -> DeviceTokens:
        tokens = self.tables[task].tokens(
            own, gear=gear, template=self.template, max_tokens=self.max_tokens
        )
        if self._is_twice(task, gear):
            tokens = concatenate([tokens, tokens])
        return DeviceTokens.from_host(tokens, self.world.device)

    def _is_twice(self, task: str, gear: Gear) -> bool:
        """Unsupervised SimCSE: the same sentence twice, under different dropout."""
        one = gear == "single" or len(self.tables[task].columns) == 1
        return one and (task, gear) in self.network.vector_objectives
