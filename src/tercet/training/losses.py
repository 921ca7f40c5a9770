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
from tercet.objectives.teacher_vectors import TeacherVectors
from tercet.specs import DepthsSpec, Mode, TaskSpec
from tercet.text.template import Template
from tercet.text.tokens import Tokens
from tercet.training.batch import Batch, Supervision
from tercet.training.distributed import World
from tercet.training.encoded_rows import Encoded
from tercet.training.head_loss import Targets, class_weights, head_loss, prior_shift
from tercet.training.masking import Masking

Answers = tuple[Tensor, ...]
"""What the loss of a mode reads: outputs of a head on whole and on narrower vectors, each [rows,
outputs], or the vectors of each column."""


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


def weights_of_classes(
    tasks: Mapping[str, TaskSpec], tables: Mapping[str, TaskTable], device: torch.device
) -> dict[str, Tensor]:
    """The weights [classes] of the tasks that have `class_weights`, by their training rows."""
    weights: dict[str, Tensor] = {}
    for name, table in tables.items():
        if tasks[name].class_weights is not None:
            assert table.labels is not None  # since it learns from them
            weights[name] = torch.from_numpy(class_weights(tasks[name], table.labels)).to(device)
    return weights


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
    class_weights: Mapping[str, Tensor] = field(default_factory=dict)
    """From `weights_of_classes`."""
    widths: Sequence[int] = ()
    """Losses are also computed on this many first numbers of the vectors."""
    depths: DepthsSpec | None = None
    """How lesser depths of the network learn, where it has any."""
    encoded: Encoded = field(default_factory=dict)
    """The rows of tables by the encoder as it is before training; others are encoded when a head is
    fitted to them."""

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
        networks = self.network.in_one_pass()
        parts = []
        for mode, spec in self.tasks[batch.task].modes.items():
            if (batch.task, mode) in self.network.masked_objectives:
                if mode in tokens:
                    loss = self._masked_loss(batch, mode, tokens[mode], supervision)
                    parts.append(spec.weight * loss)
            elif mode in tokens or self._gathers(batch.task, mode):
                answers = [self._answers(each, batch, mode, tokens.get(mode)) for each in networks]
                parts.append(spec.weight * self.loss_of(batch, mode, answers, supervision))
        if not parts:
            return torch.zeros((), device=self.world.device, requires_grad=True)
        return torch.stack(parts).sum()

    def loss_of(
        self, batch: Batch, mode: Mode, answers: Sequence[Answers], supervision: Supervision
    ) -> Tensor:
        """The loss of a mode by what the network gives at each of its depths, the full one first.

        A lesser depth learns from labels and teachers, as the full one does, and from its answers.
        """
        full, *lesser = answers
        loss = self._loss_at_depth(batch, mode, full, supervision)
        if not lesser:
            return loss
        assert self.depths is not None  # since the network has several
        share, parts = self.depths.agreement, []
        for own in lesser:
            learnt = self._loss_at_depth(batch, mode, own, supervision)
            agreed = self._disagreement(batch, mode, own, [each.detach() for each in full])
            parts.append((1.0 - share) * learnt + share * agreed)
        return loss + self.depths.weight * torch.stack(parts).mean()

    def _gathers(self, task: str, mode: Mode) -> bool:
        """Whether vectors of all processes are compared, also by a process without rows."""
        network = self.network
        return (task, mode) in network.contrastive_objectives | network.label_contrastive_objectives

    def _answers(
        self, network: Network, batch: Batch, mode: Mode, tokens: DeviceTokens | None
    ) -> Answers:
        """What the loss of a mode reads: the outputs of its head, or vectors."""
        task, side = batch.task, network.side_of(batch.task)
        if tokens is None:
            return self.no_columns(task, mode)
        if (task, mode) in network.contrastive_objectives:
            return network.columns(tokens, rows=batch.own, side=side)
        if (task, mode) in network.objectives:
            return self._outputs(network, task, mode, tokens)
        return (network.vectors(tokens, side=side),)

    def _loss_at_depth(
        self, batch: Batch, mode: Mode, answers: Answers, supervision: Supervision
    ) -> Tensor:
        key = batch.task, mode
        if key in self.network.contrastive_objectives:
            return self._contrastive_loss(batch, mode, answers)
        if key in self.network.label_contrastive_objectives:
            return self._label_contrastive_loss(batch, mode, answers[0], supervision)
        if (taught := self.network.teacher_objectives.get(key)) is not None:
            assert supervision.targets is not None
            (vectors,) = answers
            # A row's targets are side by side, its columns' vectors one after the other.
            targets = supervision.targets.view(batch.own, -1, vectors.shape[-1])
            total = batch.total * (len(vectors) // batch.own)
            return taught.loss(vectors, targets.transpose(0, 1).flatten(0, 1), total=total)
        objective, task = self.network.objectives[key], self.tasks[batch.task]
        parts = [
            head_loss(
                objective,
                task,
                mode,
                raw,
                supervision,
                total=batch.total,
                shift=self.shifts.get(batch.task, 0.0),
                weights=self.class_weights.get(batch.task),
            )
            for raw in answers
        ]
        return torch.stack(parts).mean()

    def _disagreement(
        self, batch: Batch, mode: Mode, own: Answers, full: Sequence[Tensor]
    ) -> Tensor:
        """How far the answers of a lesser depth are from those of the full one."""
        if (objective := self.network.objectives.get((batch.task, mode))) is None:
            vectors, targets = torch.cat(own), torch.cat(list(full))
            total = batch.total * max(1, len(vectors) // max(1, batch.own))
            return TeacherVectors().loss(vectors, targets, total=total)
        parts = [
            objective.disagreement(raw, given, total=batch.total * (len(raw) // batch.own))
            for raw, given in zip(own, full, strict=True)
        ]
        return torch.stack(parts).mean()

    def _masked_loss(
        self, batch: Batch, mode: Mode, tokens: DeviceTokens, supervision: Supervision
    ) -> Tensor:
        assert supervision.places is not None
        assert supervision.words is not None
        return self.network.masked_objectives[batch.task, mode].loss(
            self.network.masked_words(tokens, supervision.places),
            supervision.words,
            rows=tokens.rows.index_select(0, supervision.places),
            count=tokens.count,
            total=batch.total * (tokens.used // batch.own),
        )

    def _outputs(self, network: Network, task: str, mode: Mode, tokens: DeviceTokens) -> Answers:
        """A head's outputs [rows, outputs] on whole vectors and, where possible, narrower ones."""
        if not (self.widths and self.tasks[task].modes[mode].narrows):
            return (network.outputs(task, mode, tokens),)
        side = network.side_of(task)
        columns = network.columns(tokens, rows=tokens.used // 2, side=side)
        return tuple(network.compare(task, u, v) for u, v in self._narrowed(columns))

    def _narrowed(self, columns: tuple[Tensor, ...]) -> list[tuple[Tensor, ...]]:
        """Columns [rows, width], whole and cut to each of the widths."""
        narrow = [tuple(column[:, :width] for column in columns) for width in self.widths]
        return [columns, *narrow]

    def _label_contrastive_loss(
        self, batch: Batch, mode: Mode, vectors: Tensor, supervision: Supervision
    ) -> Tensor:
        """The loss of this process's vectors among those of all, by their labels."""
        # In fp32, which holds every class number; bf16 does not.
        own = torch.zeros(len(vectors), 1, device=vectors.device)
        if supervision.labels is not None and len(vectors):
            own = supervision.labels.float()[:, None]
        candidates, known = self.world.gather((vectors, own), rows=batch.rows)
        objective = self.network.label_contrastive_objectives[batch.task, mode]
        return objective.loss(
            vectors,
            own[:, 0],
            candidates=candidates,
            candidate_labels=known[:, 0],
            first=batch.first,
            total=batch.total,
        )

    def _contrastive_loss(self, batch: Batch, mode: Mode, columns: Answers) -> Tensor:
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
