"""Schedules: which tasks each step of a stage trains. Each kind is declared here, once."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, SerializeAsAny, model_validator

from tercet.specs.base import Count, Positive, Spec
from tercet.specs.registry import Registry


class ScheduleSpec(Spec):
    """The keys of all schedules; a kind is a subclass, and its docstring describes it.

    keys: those of the keys below that the kind reads
    implementation: `present(spec, span)` as in `tercet.train.schedules.span`
    joint: whether a step trains several tasks, so that their gradients can be combined by surgery
    after_score: `choose(spec, dev, tasks)`, the task to train from a score on dev to the next
    """

    keys: ClassVar[frozenset[str]] = frozenset()
    implementation: ClassVar[Any]
    joint: ClassVar[bool] = False
    after_score: ClassVar[Any] = None

    kind: str
    order: list[str] | None = None
    """sequential and round-robin: may name a task several times."""
    weights: dict[str, Positive] | None = None
    """random: how likely each task is; default: equally."""
    goals: dict[str, Positive] | None = None
    """needs: the score that each task should reach; default: 1."""
    temperature: Positive = 2.0
    walk: Literal["once", "cycle"] = "once"
    """round-robin and together: an epoch takes every task's data once, or repeats the smaller
    ones until the largest is done."""
    steps_per_epoch: Count | None = None
    """random, temperature, annealed and needs; default: the number of batches of all tasks."""

    @model_validator(mode="after")
    def _keys_fit_kind(self) -> Self:
        for key, field in ScheduleSpec.model_fields.items():
            is_set = key != "kind" and getattr(self, key) != field.default
            if is_set and key not in self.keys:
                raise ValueError(f"`{key}` has no meaning for kind `{self.kind}`")
        return self


class SequentialSpec(ScheduleSpec):
    """Whole passes over the tasks, in order."""

    kind: Literal["sequential"] = "sequential"
    keys = frozenset({"order"})
    implementation = "tercet.train.schedules.sequential:present"


class RoundRobinSpec(ScheduleSpec):
    """Batch by batch, in order."""

    kind: Literal["round-robin"] = "round-robin"
    keys = frozenset({"order", "walk"})
    implementation = "tercet.train.schedules.round_robin:present"


class RandomSpec(ScheduleSpec):
    """Tasks drawn by `weights`."""

    kind: Literal["random"] = "random"
    keys = frozenset({"weights", "steps_per_epoch"})
    implementation = "tercet.train.schedules.random:present"


class ProportionalSpec(ScheduleSpec):
    """Every batch of every task once per epoch, shuffled."""

    kind: Literal["proportional"] = "proportional"
    implementation = "tercet.train.schedules.proportional:present"


class TemperatureSpec(ScheduleSpec):
    """Tasks drawn by size to the power 1/`temperature`."""

    kind: Literal["temperature"] = "temperature"
    keys = frozenset({"temperature", "steps_per_epoch"})
    implementation = "tercet.train.schedules.temperature:present"


class AnnealedSpec(ScheduleSpec):
    """Tasks drawn by size at first, nearly equally in the end."""

    kind: Literal["annealed"] = "annealed"
    keys = frozenset({"steps_per_epoch"})
    implementation = "tercet.train.schedules.annealed:present"


class NeedsSpec(ScheduleSpec):
    """From one score on dev to the next, the task furthest behind its goal."""

    kind: Literal["needs"] = "needs"
    keys = frozenset({"goals", "steps_per_epoch"})
    implementation = "tercet.train.schedules.needs:present"
    after_score = "tercet.train.schedules.needs:neediest"


class TogetherSpec(ScheduleSpec):
    """A batch of every task in each step; their losses are summed."""

    kind: Literal["together"] = "together"
    keys = frozenset({"walk"})
    implementation = "tercet.train.schedules.together:present"
    joint = True


SCHEDULES: Registry[type[ScheduleSpec]] = Registry("schedule")
for _spec in (
    SequentialSpec,
    RoundRobinSpec,
    RandomSpec,
    ProportionalSpec,
    TemperatureSpec,
    AnnealedSpec,
    NeedsSpec,
    TogetherSpec,
):
    SCHEDULES.add(_spec.model_fields["kind"].default, _spec)


def _of_kind(value: Any) -> Any:
    """A schedule's keys, checked by the spec of its kind."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind", "round-robin")
    if not isinstance(kind, str) or kind not in SCHEDULES:
        raise ValueError(SCHEDULES.unknown(str(kind)).removesuffix("."))
    return SCHEDULES[kind].model_validate_json(json.dumps(value, default=str), strict=True)


Schedule = Annotated[SerializeAsAny[ScheduleSpec], BeforeValidator(_of_kind)]
