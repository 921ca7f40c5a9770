"""The loss of one task on this process's share of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tercet.data.table import TaskTable
from tercet.network.network import Network
from tercet.nn.device_tokens import DeviceTokens
from tercet.specs import Mode, TaskSpec
from tercet.text.template import Template
from tercet.text.tokens import Tokens
from tercet.training.batch import Batch, Supervision
from tercet.training.distributed import World
from tercet.training.head_loss import Targets, head_loss, prior_shift
from tercet.training.masking import Masking


def prior_shifts(
    tasks: Mapping[str, TaskSpec], tables: Mapping[str, TaskTable]
) -> dict[str, float]:
    """By how much outputs are shifted, for tasks that have a prior and learn from labels."""
    shifts: dict[str, float] = {}
    for name, table in tables.items():
        task = tasks[name]
        if task.prior is not None and task.learns_labels:
            assert table.labels is not None  # since it learns from them
            shifts[name] = prior_shift(table.labels, task.prior)
    return shifts


@dataclass(frozen=True, slots=True)
class Losses:
    """Everything from the rows of a table to their loss."""

    network: Network
    tasks: Mapping[str, TaskSpec]
    tables: Mapping[str, TaskTable]
    template: Template
    max_tokens: int
    world: World
    masking: Masking | None = None
    targets: Mapping[str, Targets] = field(default_factory=dict)
    """Of tasks with a teacher: its targets for every row of the table."""
    shifts: Mapping[str, float] = field(default_factory=dict)
    """From `prior_shifts`."""
    widths: Sequence[int] = ()
    """Losses are also computed on this many first numbers of the vectors."""

    def batch(self, task: str, rows: NDArray[np.int64], *, total: int) -> Batch:
        """This process's share of a batch: `rows` [n] of the task's table, over all processes."""
        share, own = self.share(task, rows, total=total)
        modes = self.tasks[task].modes if len(own) else ()
        tokens = {mode: self.tokens(task, mode, own) for mode in modes}
        labels, targets = self.tables[task].labels, self.targets.get(task)
        supervision = Supervision(
            labels=None if labels is None else torch.from_numpy(labels[own]),
            targets=None if targets is None else torch.from_numpy(targets[own]),
        )
        for mode in modes:
            if (objective := self.network.masked_objectives.get((task, mode))) is not None:
                assert self.masking is not None
                masked = self.masking(tokens[mode], share=objective.share)
                tokens[mode] = masked.tokens
                supervision = replace(supervision, places=masked.places, words=masked.words)
        return replace(share, tokens=tokens, supervision=supervision)

    def share(
        self, task: str, rows: NDArray[np.int64], *, total: int
    ) -> tuple[Batch, NDArray[np.int64]]:
        """This process's share of a batch before anything is read; and its rows."""
        bounds = self.world.bounds(len(rows))
        first, last = bounds[self.world.rank], bounds[self.world.rank + 1]
        share = Batch(
            task=task,
            tokens={},
            supervision=Supervision(),
            first=first,
            own=last - first,
            rows=len(rows),
            total=total,
        )
        return share, rows[first:last]

    def loss(self, batch: Batch) -> Tensor:
        """The sum over this process's rows and the task's modes, divided by `batch.total`."""
        device = self.world.device
        tokens = {mode: DeviceTokens.from_host(t, device) for mode, t in batch.tokens.items()}
        return self.loss_on_device(batch, tokens, batch.supervision.to(device))

    def loss_on_device(
        self, batch: Batch, tokens: Mapping[Mode, DeviceTokens], supervision: Supervision
    ) -> Tensor:
        """The same, of tokens and supervision on the network's device."""
        parts = []
        for mode, spec in self.tasks[batch.task].modes.items():
            if (batch.task, mode) in self.network.contrastive_objectives:
                parts.append(spec.weight * self._contrastive_loss(batch, mode, tokens.get(mode)))
            elif mode in tokens:
                loss = self._supervised_loss(batch, mode, tokens[mode], supervision)
                parts.append(spec.weight * loss)
        if not parts:
            return torch.zeros((), device=self.world.device, requires_grad=True)
        return torch.stack(parts).sum()

    def _supervised_loss(
        self, batch: Batch, mode: Mode, tokens: DeviceTokens, supervision: Supervision
    ) -> Tensor:
        if (masked := self.network.masked_objectives.get((batch.task, mode))) is not None:
            assert supervision.places is not None
            assert supervision.words is not None
            return masked.loss(
                self.network.masked_words(tokens, supervision.places),
                supervision.words,
                rows=tokens.rows.index_select(0, supervision.places),
                count=tokens.count,
                total=batch.total * (tokens.used // batch.own),
            )
        if (taught := self.network.teacher_objectives.get((batch.task, mode))) is not None:
            assert supervision.targets is not None
            vectors = self.network.vectors(tokens)
            # A row's targets are side by side, its columns' vectors one after the other.
            targets = supervision.targets.view(batch.own, -1, vectors.shape[-1])
            total = batch.total * (tokens.used // batch.own)
            return taught.loss(vectors, targets.transpose(0, 1).flatten(0, 1), total=total)
        objective, task = self.network.objectives[batch.task, mode], self.tasks[batch.task]
        shift = self.shifts.get(batch.task, 0.0)
        parts = [
            head_loss(objective, task, mode, raw, supervision, total=batch.total, shift=shift)
            for raw in self._outputs(batch.task, mode, tokens)
        ]
        return torch.stack(parts).mean()

    def _outputs(self, task: str, mode: Mode, tokens: DeviceTokens) -> list[Tensor]:
        """A head's outputs [rows, outputs] on whole vectors and, where possible, narrower ones."""
        if not (self.widths and self.tasks[task].modes[mode].narrows):
            return [self.network.outputs(task, mode, tokens)]
        columns = self.network.columns(tokens, rows=tokens.used // 2)
        return [self.network.compare(task, u, v) for u, v in self._narrowed(columns)]

    def _narrowed(self, columns: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
        """Columns [rows, width], whole and cut to each of the widths."""
        narrow = [tuple(column[:, :width] for column in columns) for width in self.widths]
        return [columns, *narrow]

    def _contrastive_loss(self, batch: Batch, mode: Mode, tokens: DeviceTokens | None) -> Tensor:
        if tokens is None:
            return self.compare(batch, mode, self.no_columns(batch.task, mode))
        return self.compare(batch, mode, self.network.columns(tokens, rows=batch.own))

    def compare(self, batch: Batch, mode: Mode, columns: tuple[Tensor, ...]) -> Tensor:
        """The loss of this process's vectors, [own rows, width] per column, among those of all."""
        candidates = self.world.gather(columns[1:], rows=batch.rows)
        objective = self.network.contrastive_objectives[batch.task, mode]
        whole_and_narrow = zip(self._narrowed(columns), self._narrowed(candidates), strict=True)
        parts = [
            objective.loss(own, candidates=others, first=batch.first, total=batch.total)
            for own, others in whole_and_narrow
        ]
        return torch.stack(parts).mean()

    def no_columns(self, task: str, mode: Mode) -> tuple[Tensor, ...]:
        """The empty columns with which a process without rows takes part in gathering."""
        count = 2 if self._is_twice(task, mode) else len(self.tables[task].columns)
        width = self.network.encoder.config.width
        empty = torch.zeros(0, width, device=self.world.device, requires_grad=True)
        return (empty,) * count

    def tokens(self, task: str, mode: Mode, own: NDArray[np.int64]) -> Tokens:
        """The tokens of some rows in one mode."""
        longest = min(self.max_tokens, self.tasks[task].max_tokens or self.max_tokens)
        if self.tasks[task].modes[mode].r_drop > 0.0:
            own = np.concatenate([own, own])
        tokens = self.tables[task].tokens(
            own, mode=mode, template=self.template, max_tokens=longest
        )
        return Tokens.concat([tokens, tokens]) if self._is_twice(task, mode) else tokens

    def _is_twice(self, task: str, mode: Mode) -> bool:
        """Unsupervised SimCSE: the same sentence twice, under different dropout."""
        is_single = mode == "single" or len(self.tables[task].columns) == 1
        return is_single and (task, mode) in self.network.contrastive_objectives
