"""Stages: which tasks train together, how, and for how long; and what is measured and kept."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tercet.specs.base import Count, Positive, Share, Spec, Surgery

_FREEZABLE = re.compile(r"encoder|embeddings|pooler|layers\.\d+(-\d+)?|(heads|shared)\.[^.]+")


class ScheduleSpec(Spec):
    kind: Literal[
        "sequential",
        "round-robin",
        "random",
        "proportional",
        "temperature",
        "annealed",
        "needs",
        "together",
    ] = "round-robin"
    """sequential: whole passes in order; round-robin: batch by batch in order; random: drawn by
    `weights`; proportional: every batch of every task once, shuffled; temperature: drawn by size to
    the power 1/`temperature`; annealed: drawn by size at first, in the end nearly equally;
    needs: from one score on dev to the next, the task that lags most behind its goal; together: a
    batch of every task each step, losses summed."""
    order: list[str] | None = None
    """Of sequential and round-robin; a task may stand in it several times."""
    weights: dict[str, Positive] | None = None
    """Of random: how likely each task is; equal when left out."""
    goals: dict[str, Positive] | None = None
    """Of needs: the score that each task should reach; 1 for those left out."""
    temperature: Positive = 2.0
    walk: Literal["once", "cycle"] = "once"
    """Of round-robin and together: each epoch walks every task's data once, or cycles the smaller
    ones until the largest is done."""
    steps_per_epoch: Count | None = None
    """Of random, temperature, annealed and needs; as many batches as all tasks hold when left
    out."""

    @model_validator(mode="after")
    def _keys_fit_kind(self) -> Self:
        drawn = self.kind in ("random", "temperature", "annealed", "needs")
        if self.order is not None and self.kind not in ("sequential", "round-robin"):
            raise ValueError(f"`order` has no meaning for kind `{self.kind}`")
        if self.weights is not None and self.kind != "random":
            raise ValueError(f"`weights` has no meaning for kind `{self.kind}`")
        if self.goals is not None and self.kind != "needs":
            raise ValueError(f"`goals` has no meaning for kind `{self.kind}`")
        if self.steps_per_epoch is not None and not drawn:
            raise ValueError(f"`steps_per_epoch` has no meaning for kind `{self.kind}`")
        if self.walk == "cycle" and self.kind not in ("round-robin", "together"):
            raise ValueError(f'`walk = "cycle"` has no meaning for kind `{self.kind}`')
        return self


class OptimiserSpec(Spec):
    lr: Positive = 2e-5
    head_lr: Positive | None = None
    """Learning rate of heads, where it differs."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    """Not on biases and norms."""
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Positive = 1e-8
    decay: Literal["constant", "linear", "cosine"] = "linear"
    """How the learning rate falls, to zero, over the stage."""
    warmup: Share = 0.1
    """Share of the stage's steps over which the learning rate rises first."""
    clip: Annotated[float, Field(ge=0.0)] = 1.0
    """Greatest norm of the gradient; 0 leaves it alone."""


class EvaluationSpec(Spec):
    tasks: Annotated[list[str], Field(min_length=1)] | None = None
    """Which tasks are scored on dev; all that predict when left out."""
    score: str = "mean"
    """What is the best checkpoint: `mean` of the tasks' metrics, `mean-shifted` with (r+1)/2 for
    correlations, or TASK.METRIC."""
    every: Annotated[int, Field(ge=0)] | None = None
    """Steps between scores on dev; 0 scores only at the end of each stage; each epoch when left
    out."""
    rows: Count | None = None
    """Only the first dev rows of each task while training, for speed."""
    keep: Literal["best", "last"] = "best"
    """Which weights a stage leaves to the next, and the last one as the model."""
    patience: Count | None = None
    """Scores without a better one before a stage ends early."""


class StageSpec(Spec):
    name: Annotated[str, Field(min_length=1)] = "train"
    tasks: Annotated[list[str], Field(min_length=1)] | None = None
    """Which tasks train; all of them when left out."""
    schedule: ScheduleSpec = ScheduleSpec()
    epochs: Positive | None = None
    steps: Count | None = None
    """How long: exactly one of `epochs` and `steps`."""
    batch: Count = 32
    """Rows a batch of every task that sets none itself; over all processes."""
    accumulate: Count = 1
    """Batches of a task whose gradients make one step."""
    freeze: list[str] = Field(default_factory=list)
    """Parts that do not train: encoder, embeddings, layers.0-5, pooler, heads.TASK,
    shared.NAME."""
    surgery: Surgery | None = None
    """Gradient surgery by name, with schedule `together`."""
    optimiser: OptimiserSpec = OptimiserSpec()
    average: Share | None = None
    """Decay of a moving average of the weights, such as 0.999: it is the average that is scored
    and left, while training goes on from the weights themselves."""
    evaluation: EvaluationSpec | None = None
    """This stage's own, in place of all of the recipe's."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """bf16 is autocast over fp32 weights; auto takes it on GPUs only."""

    @field_validator("freeze")
    @classmethod
    def _parts_exist(cls, parts: list[str]) -> list[str]:
        for part in parts:
            bounds = [int(number) for number in re.findall(r"\d+", part.removeprefix("heads."))]
            falls = part.startswith("layers.") and bounds != sorted(bounds)
            if falls or not _FREEZABLE.fullmatch(part):
                raise ValueError(
                    f"{part!r} is no part: use encoder, embeddings, layers.N, layers.N-M, pooler, "
                    "heads.TASK or shared.NAME"
                )
        return parts

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("needs exactly one of `epochs` and `steps`")
        if self.surgery is not None and self.schedule.kind != "together":
            raise ValueError('`surgery` needs `schedule.kind` = "together"')
        return self


class CheckpointSpec(Spec):
    every: Annotated[int, Field(ge=0)] = 500
    """Steps between checkpoints; 0 writes none but those of Ctrl-C and of a stage's end."""
    keep: Count = 2
    """How many of the newest are kept."""
