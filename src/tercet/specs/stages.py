"""Stages: which tasks train together, how, and for how long; what is scored and kept."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tercet.specs.base import Count, Positive, Share, Spec
from tercet.specs.schedules import SCHEDULES, RoundRobinSpec, Schedule
from tercet.specs.surgeries import Surgery

_FREEZABLE = re.compile(r"encoder|embeddings|pooler|layers\.\d+(-\d+)?|(heads|sides|shared)\.[^.]+")


class OptimiserSpec(Spec):
    lr: Positive = 2e-5
    """Learning rate of the encoder, and of heads without `head_lr`; AdamW. Example: `3e-5`."""
    head_lr: Positive | None = None
    """Learning rate of heads; default: `lr`. Example: `1e-3`."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    """Weight decay, except of biases and norms. Example: `0.1`."""
    betas: tuple[Share, Share] = (0.9, 0.999)
    """Decay of the moving averages of gradients and of their squares. Example: `[0.9, 0.98]`."""
    eps: Positive = 1e-8
    """Added to the denominator of a step, for stability. Example: `1e-6`."""
    decay: Literal["constant", "linear", "cosine"] = "linear"
    """How the learning rate falls after the warm-up; linear and cosine reach zero after the stage's
    last step. Example: `"cosine"`."""
    warmup: Share = 0.1
    """Share of the stage's steps in which the learning rate first rises, linearly. Example:
    `0.06`."""
    clip: Annotated[float, Field(ge=0.0)] = 1.0
    """Maximum norm of the gradient of all weights together; 0 turns clipping off. Example: `0`."""


class EvaluationSpec(Spec):
    tasks: Annotated[list[str], Field(min_length=1)] | None = None
    """Tasks that are scored on dev; default: all that predict. Example: `["sentiment"]`."""
    score: str = "mean"
    """What the best checkpoint is chosen by: `mean` of the tasks' metrics, `mean-shifted` with
    (r+1)/2 for correlations, or TASK.METRIC. Example: `"sentiment.accuracy"`."""
    every: Annotated[int, Field(ge=0)] | None = None
    """Steps between scores on dev; 0: only at the end of each stage; default: every epoch. Example:
    `200`."""
    rows: Count | None = None
    """Score only the first dev rows of each task during training, for speed. Example: `2000`."""
    keep: Literal["best", "last"] = "best"
    """Which weights the next stage starts from; the last stage's become the model. Example:
    `"last"`."""
    patience: Count | None = None
    """End a stage early after this many scores without a new best. Example: `5`."""


Precision = Literal["auto", "fp32", "bf16"]


class StageSpec(Spec):
    name: Annotated[str, Field(min_length=1)] = "train"
    """Name in logs and in `--set`. Example: `"warm-up"`."""
    tasks: Annotated[list[str], Field(min_length=1)] | None = None
    """Tasks that train; default: all. Example: `["paraphrase"]`."""
    schedule: Schedule = RoundRobinSpec()
    """Which tasks each step trains. Example: `{ kind = "together" }`."""
    epochs: Positive | None = None
    """Length in passes over the data, also a fraction; exactly one of `epochs`, `steps` and `solve`
    is needed. Example: `3`."""
    steps: Count | None = None
    """Length in steps of the optimiser. Example: `500`."""
    solve: bool = False
    """Fit the last layer of every head exactly, by regression on the vectors that the encoder gives
    now, instead of training in steps; heads without such a layer stay as they are. Example:
    `true`."""
    shortened: list[tuple[Count, Count]] | None = None
    """Pairs of [step, steps]: after this step the stage was shortened to this many steps in all,
    and the rest of the learning rate's schedule was compressed into them. `fit` records here how
    it ended in time, so that the recipe trains again to the same model. Example: `[[120, 300]]`."""
    batch: Count = 32
    """Rows per batch over all processes, for tasks without their own. Example: `64`."""
    accumulate: Count = 1
    """Batches of a task in one step, whose loss is the mean over all their rows, as of one larger
    batch; contrastive losses compare rows of the same batch only. Example: `4`."""
    freeze: list[str] = Field(default_factory=list)
    """Parts that do not train: encoder, embeddings, layers.0-5, pooler, heads.TASK, sides.TASK,
    shared.NAME. Example: `["embeddings", "layers.0-3"]`."""
    surgery: Surgery | None = None
    """Gradient surgery by kind, with schedule `together`. Example: `"pcgrad"`."""
    optimiser: OptimiserSpec = OptimiserSpec()
    """Learning rates and their schedule, weight decay and clipping. Example: `{ lr = 3e-5, decay =
    "cosine" }`."""
    average: Share | None = None
    """Decay of a moving average of the weights, such as 0.999. The average is scored and kept;
    training continues from the weights themselves. Example: `0.999`."""
    evaluation: EvaluationSpec | None = None
    """Replaces the recipe's evaluation in this stage. Example: `{ keep = "last" }`."""
    precision: Precision = "auto"
    """bf16: autocast over fp32 weights; auto: bf16 on GPUs only. Example: `"fp32"`."""

    @field_validator("freeze")
    @classmethod
    def _parts_exist(cls, parts: list[str]) -> list[str]:
        for part in parts:
            bounds = [int(number) for number in re.findall(r"\d+", part.removeprefix("heads."))]
            descends = part.startswith("layers.") and bounds != sorted(bounds)
            if descends or not _FREEZABLE.fullmatch(part):
                raise ValueError(
                    f"{part!r} cannot be frozen: use encoder, embeddings, layers.N, layers.N-M, "
                    "pooler, heads.TASK, sides.TASK or shared.NAME"
                )
        return parts

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if [self.epochs is None, self.steps is None, not self.solve].count(False) != 1:
            raise ValueError("needs exactly one of `epochs`, `steps` and `solve`")
        self._check_shortened()
        if self.surgery is not None and not self.schedule.joint:
            joint = " or ".join(f'"{kind}"' for kind in SCHEDULES if SCHEDULES[kind].joint)
            raise ValueError(f"`surgery` needs `schedule.kind` = {joint}")
        return self

    def _check_shortened(self) -> None:
        if not self.shortened:
            return
        if self.solve:
            raise ValueError("`solve` has no steps that could be `shortened`")
        steps = [step for step, _ in self.shortened]
        ends = [end for _, end in self.shortened]
        if steps != sorted(set(steps)) or ends != sorted(set(ends), reverse=True):
            raise ValueError("`shortened` needs rising steps, each with fewer steps in all")
        if steps[-1] >= ends[-1]:
            raise ValueError(f"`shortened` ends the stage at {ends[-1]} after step {steps[-1]}")


class CheckpointSpec(Spec):
    every: Annotated[int, Field(ge=0)] = 500
    """Steps between checkpoints; 0: only on Ctrl-C and at the end of a stage. Example: `1000`."""
    keep: Count = 2
    """How many of the newest checkpoints are kept. Example: `1`."""
