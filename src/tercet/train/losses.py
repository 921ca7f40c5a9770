"""The loss of one task on this process's share of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.table import TaskTable
from tercet.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Gear, TaskSpec
from tercet.text.template import Template
from tercet.text.tokens import Tokens, concatenate
from tercet.train.distributed import World
from tercet.train.head_loss import Targets, head_loss, prior_shift, with_targets
from tercet.train.masking import Masking


@dataclass(frozen=True, slots=True)
class Batch:
    """What one process reads of a batch, still on the host.

    tokens: of each gear of the task; no gear where this process has no rows
    labels: int64 classes or float32 grades [own rows], with a teacher's targets as `with_targets`
        puts them; int64 [2, masked], places and words, where words are masked; None for tasks
        without labels
    first, own, rows: where its own rows begin, how many they are, and those of all processes
    total: rows of the step over all processes, so that losses and gradients add up
    """

    task: str
    tokens: Mapping[Gear, Tokens]
    labels: Tensor | None
    first: int
    own: int
    rows: int
    total: int


def prior_shifts(
    tasks: Mapping[str, TaskSpec], tables: Mapping[str, TaskTable]
) -> dict[str, float]:
    """Of tasks with a prior that learn from labels: what their outputs are shifted by."""
    found: dict[str, float] = {}
    for name, table in tables.items():
        task = tasks[name]
        if task.prior is not None and task.learns_labels:
            assert table.labels is not None  # since it learns from them
            found[name] = prior_shift(table.labels, task.prior)
    return found


@dataclass(frozen=True, slots=True)
class Losses:
    """Everything that a row's way from the table to its loss needs."""

    network: Network
    tasks: Mapping[str, TaskSpec]
    tables: Mapping[str, TaskTable]
    template: Template
    max_tokens: int
    world: World
    masking: Masking | None = None
    targets: Mapping[str, Targets] = field(default_factory=dict)
    """Of tasks with a teacher, what it gives for every row of their table."""
    shifts: Mapping[str, float] = field(default_factory=dict)
    """Of tasks with a prior, what `prior_shift` finds for their table."""
    widths: Sequence[int] = ()
    """Of how many first numbers of vectors losses are taken too."""

    def batch(self, task: str, rows: NDArray[np.int64], *, total: int) -> Batch:
        """This process's share of a batch: `rows` [n] of the task's table, over all processes."""
        share, own = self.share(task, rows, total=total)
        gears = self.tasks[task].gears if len(own) else ()
        tokens = {gear: self.tokens(task, gear, own) for gear in gears}
        known, taught = self.tables[task].labels, self.targets.get(task)
        labels = with_targets(
            None if known is None else known[own], None if taught is None else taught[own]
        )
        for gear in gears:
            if (objective := self.network.masked_objectives.get((task, gear))) is not None:
                assert self.masking is not None
                tokens[gear], labels = self.masking(tokens[gear], share=objective.share)
        return replace(share, tokens=tokens, labels=labels)

    def share(
        self, task: str, rows: NDArray[np.int64], *, total: int
    ) -> tuple[Batch, NDArray[np.int64]]:
        """Where this process's rows stand in a batch, nothing read yet; and these rows."""
        bounds = self.world.bounds(len(rows))
        first, last = bounds[self.world.rank], bounds[self.world.rank + 1]
        share = Batch(
            task=task,
            tokens={},
            labels=None,
            first=first,
            own=last - first,
            rows=len(rows),
            total=total,
        )
        return share, rows[first:last]

    def loss(self, batch: Batch) -> Tensor:
        """The sum over this process's rows and the task's gears, divided by `batch.total`."""
        device = self.world.device
        tokens = {gear: DeviceTokens.from_host(t, device) for gear, t in batch.tokens.items()}
        labels = batch.labels
        if labels is not None:
            labels = labels.to(device, non_blocking=True)
        return self.loss_on_device(batch, tokens, labels)

    def loss_on_device(
        self, batch: Batch, tokens: Mapping[Gear, DeviceTokens], labels: Tensor | None
    ) -> Tensor:
        """The same, of tokens and labels that are where the network is."""
        parts = []
        for gear, spec in self.tasks[batch.task].gears.items():
            if (batch.task, gear) in self.network.vector_objectives:
                parts.append(spec.weight * self._vector_loss(batch, gear, tokens.get(gear)))
            elif gear in tokens:
                assert labels is not None
                parts.append(spec.weight * self._labelled_loss(batch, gear, tokens[gear], labels))
        if not parts:
            return torch.zeros((), device=self.world.device, requires_grad=True)
        return torch.stack(parts).sum()

    def _labelled_loss(
        self, batch: Batch, gear: Gear, tokens: DeviceTokens, labels: Tensor
    ) -> Tensor:
        if (masked := self.network.masked_objectives.get((batch.task, gear))) is not None:
            places, words = labels
            return masked.loss(
                self.network.masked_words(tokens, places),
                words,
                rows=tokens.rows.index_select(0, places),
                count=tokens.count,
                total=batch.total * (tokens.used // batch.own),
            )
        if (kept := self.network.teacher_objectives.get((batch.task, gear))) is not None:
            vectors = self.network.vectors(tokens)
            # A row's targets lie side by side, its columns' vectors one after the other.
            targets = labels.view(batch.own, -1, vectors.shape[-1]).transpose(0, 1).flatten(0, 1)
            total = batch.total * (tokens.used // batch.own)
            return kept.loss(vectors, targets, total=total)
        objective, task = self.network.objectives[batch.task, gear], self.tasks[batch.task]
        shift = self.shifts.get(batch.task, 0.0)
        parts = [
            head_loss(objective, task, gear, raw, labels, total=batch.total, shift=shift)
            for raw in self._outputs(batch.task, gear, tokens)
        ]
        return torch.stack(parts).mean()

    def _outputs(self, task: str, gear: Gear, tokens: DeviceTokens) -> list[Tensor]:
        """A head's outputs [rows, outputs] of whole vectors and, where it can, of narrower."""
        if not (self.widths and self.tasks[task].gears[gear].narrows):
            return [self.network.outputs(task, gear, tokens)]
        columns = self.network.columns(tokens, rows=tokens.used // 2)
        return [self.network.compare(task, u, v) for u, v in self._narrowed(columns)]

    def _narrowed(self, columns: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
        """Columns [rows, width] whole, and their first numbers at each of the widths."""
        narrow = [tuple(column[:, :width] for column in columns) for width in self.widths]
        return [columns, *narrow]

    def _vector_loss(self, batch: Batch, gear: Gear, tokens: DeviceTokens | None) -> Tensor:
        if tokens is None:
            return self.compare(batch, gear, self.no_columns(batch.task, gear))
        return self.compare(batch, gear, self.network.columns(tokens, rows=batch.own))

    def compare(self, batch: Batch, gear: Gear, columns: tuple[Tensor, ...]) -> Tensor:
        """The loss on this process's vectors, [own rows, width] a column, among those of all."""
        candidates = self.world.gather(columns[1:], rows=batch.rows)
        objective = self.network.vector_objectives[batch.task, gear]
        whole_and_narrow = zip(self._narrowed(columns), self._narrowed(candidates), strict=True)
        parts = [
            objective.loss(own, candidates=others, first=batch.first, total=batch.total)
            for own, others in whole_and_narrow
        ]
        return torch.stack(parts).mean()

    def no_columns(self, task: str, gear: Gear) -> tuple[Tensor, ...]:
        """What a process without rows takes part with in gathering the others'."""
        count = 2 if self._is_twice(task, gear) else len(self.tables[task].columns)
        width = self.network.encoder.config.width
        empty = torch.zeros(0, width, device=self.world.device, requires_grad=True)
        return (empty,) * count

    def tokens(self, task: str, gear: Gear, own: NDArray[np.int64]) -> Tokens:
        """What an objective reads of some rows in one gear."""
        longest = min(self.max_tokens, self.tasks[task].max_tokens or self.max_tokens)
        if self.tasks[task].gears[gear].r_drop > 0.0:
            own = np.concatenate([own, own])
        tokens = self.tables[task].tokens(
            own, gear=gear, template=self.template, max_tokens=longest
        )
        return concatenate([tokens, tokens]) if self._is_twice(task, gear) else tokens

    def _is_twice(self, task: str, gear: Gear) -> bool:
        """Unsupervised SimCSE: the same sentence twice, under different dropout."""
        one = gear == "single" or len(self.tables[task].columns) == 1
        return one and (task, gear) in self.network.vector_objectives
