"""The network: one encoder, and the heads and objectives that a recipe's tasks ask for."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tercet.errors import TercetError
from tercet.nn.device_tokens import DeviceTokens
from tercet.nn.encoder import Encoder
from tercet.nn.heads import HEADS
from tercet.nn.pooling import pool
from tercet.objectives import OBJECTIVES, PredictiveObjective, VectorObjective
from tercet.specs import ON_VECTORS, Gear, GearSpec, ObjectiveSpec, PoolingName, TaskSpec


class Network(nn.Module):
    """Tokens to vectors, and vectors to the predictions of every task and gear."""

    def __init__(
        self, encoder: Encoder, *, pooling: PoolingName, tasks: Mapping[str, TaskSpec]
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.objectives: dict[tuple[str, Gear], PredictiveObjective] = {}
        self.vector_objectives: dict[tuple[str, Gear], VectorObjective] = {}
        self.heads = nn.ModuleDict()
        for name, task in tasks.items():
            if hasattr(self.heads, name):
                raise TercetError(f"no task can be called `{name}`: torch keeps that name.")
            self.heads[name] = nn.ModuleDict()
            for gear, spec in task.gears.items():
                self._add_gear(name, gear, spec, task)

    def _add_gear(self, name: str, gear: Gear, spec: GearSpec, task: TaskSpec) -> None:
        if spec.head is None:
            self.vector_objectives[name, gear] = build_vector_objective(spec.objective)
            return
        objective = build_objective(spec.objective, task)
        self.objectives[name, gear] = objective
        options = spec.head.model_dump(exclude={"kind"})
        head = HEADS[spec.head.kind](
            width=self.encoder.config.width, outputs=objective.outputs, **options
        )
        heads = self.heads[name]
        assert isinstance(heads, nn.ModuleDict)
        heads[gear] = head

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def head(self, task: str, gear: Gear) -> nn.Module:
        """The head of a task in one gear."""
        heads = self.heads[task]
        assert isinstance(heads, nn.ModuleDict)
        return heads[gear]

    def vectors(self, tokens: DeviceTokens) -> Tensor:
        """One vector a sentence or joined pair, [tokens.used, width]."""
        hidden = self.encoder(tokens)
        pooled = pool(hidden, tokens, how=self.pooling, pooler=self.encoder.pooler)
        return pooled[: tokens.used]

    def columns(self, tokens: DeviceTokens, *, rows: int) -> tuple[Tensor, ...]:
        """Vectors of sentences that lie column after column, as one [rows, width] a column."""
        vectors = self.vectors(tokens)
        return vectors.view(-1, rows, vectors.shape[-1]).unbind(0)

    def outputs(self, task: str, gear: Gear, tokens: DeviceTokens) -> Tensor:
        """What the head gives before it becomes a prediction, [rows, outputs].

        tokens: the sentences (single), the joined pairs (cross), or all first and then all second
        sentences (bi)
        """
        if gear == "bi":
            u, v = self.columns(tokens, rows=tokens.used // 2)
            return self.compare(task, u, v)
        raw: Tensor = self.head(task, gear)(self.vectors(tokens))
        return raw

    def compare(self, task: str, u: Tensor, v: Tensor) -> Tensor:
        """The bi head's output for vectors that may have been stored, [rows, outputs]."""
        raw: Tensor = self.head(task, "bi")(u, v)
        return raw

    def predict(self, task: str, gear: Gear, raw: Tensor) -> Tensor:
        """Outputs to probabilities [rows, classes] or [rows], or to grades [rows]."""
        return self.objectives[task, gear].predict(raw)


def build_objective(spec: ObjectiveSpec, task: TaskSpec) -> PredictiveObjective:
    """The objective of a head, told the task's classes or range of grades."""
    objective: PredictiveObjective = OBJECTIVES[spec.kind](
        classes=len(task.labels) if task.labels is not None else None,
        label_range=task.range,
        **spec.model_dump(exclude={"kind"}),
    )
    return objective


def build_vector_objective(spec: ObjectiveSpec) -> VectorObjective:
    """The objective of a task without head."""
    assert isinstance(spec, ON_VECTORS)
    objective: VectorObjective = OBJECTIVES[spec.kind](**spec.model_dump(exclude={"kind"}))
    return objective
