"""Schedules by their kind: the package's, a user's own, and unknown ones."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tercet.errors import TercetError
from tercet.recipe import Recipe
from tercet.specs import SCHEDULES, ScheduleSpec
from tercet.specs.registry import resolve
from tercet.training.loop import Position
from tercet.training.plan import StagePlan
from tercet.training.schedules.span import Presence, Span

TREE: dict[str, Any] = {
    "name": "schedules",
    "summary": "A recipe of the tests",
    "encoder": {"name": "any"},
    "tasks": {
        "sentiment": {
            "data": {"layout": "cs224n-sst"},
            "labels": ["0", "1"],
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        }
    },
}


def recipe(**schedule: Any) -> Recipe:
    return Recipe.from_tree({**TREE, "stages": [{"steps": 9, "schedule": schedule}]}, where="test")


def every_other(spec: BlockSpec, span: Span) -> tuple[Presence, int]:
    steps = np.arange(span.total(spec.block))
    return ((steps // spec.block) % len(span.sizes))[:, None] == np.arange(len(span.sizes)), 1


class BlockSpec(ScheduleSpec):
    """Blocks of steps of each task."""

    kind: Literal["blocks"] = "blocks"
    block: int = 2
    implementation = every_other


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SCHEDULES, "_parts", dict(SCHEDULES._parts))
    SCHEDULES.add("blocks", BlockSpec)


@pytest.mark.usefixtures("blocks")
def test_a_schedule_of_the_users_own_has_keys_and_an_implementation_of_its_own() -> None:
    loaded = recipe(kind="blocks", block=3)
    spec = loaded.stages[0].schedule
    assert spec == BlockSpec(block=3)
    assert loaded.model_dump(mode="json")["stages"][0]["schedule"]["block"] == 3
    plan = StagePlan(
        spec,
        sizes={"a": 9, "b": 9},
        rows_per_visit={"a": 1, "b": 1},
        epochs=None,
        steps=8,
        seed=(0,),
    )
    assert "".join(plan.draws(step)[0].task for step in range(8)) == "aaabbbaa"


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        (
            {"kind": "block"},
            "schedule`: Unknown schedule `block` (did you mean `blocks`?)",
        ),
        ({"kind": 3}, "`stages.0.schedule` needs a `kind`"),
        ({"kind": "blocks", "block": "x"}, '`stages.0.schedule.block` is "x"'),
        ({"kind": "blocks", "order": ["sentiment"]}, "`order` has no meaning for kind `blocks`"),
        ({"kind": "annealed", "walk": "cycle"}, "`walk` has no meaning for kind `annealed`"),
        ({"kind": "annealed", "block": 3}, "unknown key `stages.0.schedule.block`"),
    ],
)
def test_mistakes_are_named_with_their_place(schedule: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TercetError) as raised:
        recipe(**schedule)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("kind", SCHEDULES.names())
def test_every_kind_is_declared_whole(kind: str) -> None:
    spec = SCHEDULES[kind]
    assert spec().kind == kind
    assert spec.__doc__
    assert spec.keys <= ScheduleSpec.model_fields.keys()
    assert callable(resolve(spec.implementation))
    assert spec.after_score is None or callable(resolve(spec.after_score))


def test_positions_of_version_0_1_can_be_resumed() -> None:
    old = {"stage": 1, "step": 2, "total": 5, "kept": [3], "turns": [[1, 0]]}
    new = Position(stage=1, step=2, total=5, kept_steps=[3], switches=[[1, 0]])
    assert Position.restore(old) == new


def test_an_unknown_surgery_is_an_error_that_lists_the_known_ones() -> None:
    stages = [{"steps": 9, "schedule": {"kind": "together"}, "surgery": "pcgard"}]
    with pytest.raises(TercetError, match=r"surgery`: Unknown surgery `pcgard` \(did you"):
        Recipe.from_tree({**TREE, "stages": stages}, where="test")
