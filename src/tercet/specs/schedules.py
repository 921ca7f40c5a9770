"""Schedules: which tasks each step of a stage trains. Each kind is declared here, once."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import SerializeAsAny, model_validator

from tercet.specs.base import Count, Positive
from tercet.specs.parts import Part, declare, of_kind
from tercet.specs.registry import Registry

SCHEDULES: Registry[type[ScheduleSpec]] = Registry("schedule")


class ScheduleSpec(Part):
    """A kind of schedule, with the keys of all kinds.

    Its implementation is a function `present(spec, span)` as in `tercet.training.schedules.span`.
    """

    registry = SCHEDULES
    keys: ClassVar[frozenset[str]] = frozenset()
    """Those of the keys below that it reads."""
    joint: ClassVar[bool] = False
    """Whether a step trains several tasks, so that surgery can combine their gradients."""
    after_score: ClassVar[Any] = None
    """`choose(spec, dev, tasks)`: the task to train from a score on dev to the next."""

    order: list[str] | None = None
    """Order of the tasks, for sequential and round-robin; a task may occur several times. Example:
    `["sentiment", "paraphrase"]`."""
    weights: dict[str, Positive] | None = None
    """How likely each task is, for random; default: all equally. Example: `{ sentiment = 1,
    paraphrase = 3 }`."""
    goals: dict[str, Positive] | None = None
    """The score that each task should reach, for needs; default: 1. Example: `{ sentiment = 0.5,
    paraphrase = 0.85 }`."""
    temperature: Positive = 2.0
    """1 draws tasks by size; higher values draw them more equally. Example: `4`."""
    walk: Literal["once", "cycle"] = "once"
    """Whether an epoch takes every task's data once, or repeats the smaller ones until the largest
    is done, for round-robin and together. Example: `"cycle"`."""
    steps_per_epoch: Count | None = None
    """Steps that count as an epoch, for random, temperature, annealed and needs; default: the
    number of batches of all tasks. Example: `1000`."""

    @model_validator(mode="after")
    def _keys_fit_kind(self) -> Self:
        for key, field in ScheduleSpec.model_fields.items():
            is_set = key != "kind" and getattr(self, key) != field.default
            if is_set and key not in self.keys:
                raise ValueError(f"`{key}` has no meaning for kind `{self.kind}`")
        return self


@declare
class SequentialSpec(ScheduleSpec):
    """Whole passes over the tasks, in order."""

    kind: Literal["sequential"] = "sequential"
    keys = frozenset({"order"})
    implementation = "tercet.training.schedules.sequential:present"


@declare
class RoundRobinSpec(ScheduleSpec):
    """Batch by batch, in order."""

    kind: Literal["round-robin"] = "round-robin"
    keys = frozenset({"order", "walk"})
    implementation = "tercet.training.schedules.round_robin:present"


@declare
class RandomSpec(ScheduleSpec):
    """Tasks drawn by `weights`."""

    kind: Literal["random"] = "random"
    keys = frozenset({"weights", "steps_per_epoch"})
    implementation = "tercet.training.schedules.random:present"


@declare
class ProportionalSpec(ScheduleSpec):
    """Every batch of every task once per epoch, shuffled."""

    kind: Literal["proportional"] = "proportional"
    implementation = "tercet.training.schedules.proportional:present"


@declare
class TemperatureSpec(ScheduleSpec):
    """Tasks drawn by size to the power 1/`temperature`."""

    kind: Literal["temperature"] = "temperature"
    keys = frozenset({"temperature", "steps_per_epoch"})
    implementation = "tercet.training.schedules.temperature:present"


@declare
class AnnealedSpec(ScheduleSpec):
    """Tasks drawn by size at first, nearly equally in the end."""

    kind: Literal["annealed"] = "annealed"
    keys = frozenset({"steps_per_epoch"})
    implementation = "tercet.training.schedules.annealed:present"


@declare
class NeedsSpec(ScheduleSpec):
    """From one score on dev to the next, the task furthest behind its goal."""

    kind: Literal["needs"] = "needs"
    keys = frozenset({"goals", "steps_per_epoch"})
    implementation = "tercet.training.schedules.needs:present"
    after_score = "tercet.training.schedules.needs:neediest"


@declare
class TogetherSpec(ScheduleSpec):
    """A batch of every task in each step; their losses are summed."""

    kind: Literal["together"] = "together"
    keys = frozenset({"walk"})
    implementation = "tercet.training.schedules.together:present"
    joint = True


Schedule = Annotated[SerializeAsAny[ScheduleSpec], of_kind(SCHEDULES, default="round-robin")]
