from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import WeightedRandomSampler

from tercet.specs import SCHEDULES, ScheduleSpec, TaskSpec
from tercet.training.plan import StagePlan, Subset

KINDS = ["sequential", "round-robin", "random", "proportional", "temperature", "annealed"]
SPECS = [SCHEDULES[kind]() for kind in [*KINDS, "together"]]
SPECS += [SCHEDULES[kind](walk="cycle") for kind in ("round-robin", "together")]
NAMES = ["sst", "sts", "qqp", "nli"]


@st.composite
def stages(draw: st.DrawFn) -> dict[str, Any]:
    """Random tasks of a stage: their sizes, their batches and a seed."""
    names = NAMES[: draw(st.integers(1, 4))]
    return {
        "sizes": {name: draw(st.integers(1, 40)) for name in names},
        "rows_per_visit": {name: draw(st.integers(1, 12)) for name in names},
        "seed": (draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 3))),
    }


def make_plan(
    spec: ScheduleSpec,
    sizes: dict[str, int],
    *,
    batch: int = 10,
    epochs: float | None = None,
    steps: int | None = None,
    seed: Sequence[int] = (7, 0),
) -> StagePlan:
    batches = dict.fromkeys(sizes, batch)
    if epochs is None and steps is None:
        epochs = 1
    return StagePlan(
        spec, sizes=sizes, rows_per_visit=batches, epochs=epochs, steps=steps, seed=seed
    )


def tasks_of(plan: StagePlan) -> list[str]:
    """The tasks of all steps, one after the other; of a step with several, joined by +."""
    return ["+".join(draw.task for draw in plan.draws(step)) for step in range(len(plan))]


def rows_of(plan: StagePlan) -> dict[str, list[list[int]]]:
    """Each task's batches in the order in which they come."""
    batches: dict[str, list[list[int]]] = defaultdict(list)
    for step in range(len(plan)):
        for draw in plan.draws(step):
            batches[draw.task].append(draw.rows.tolist())
    return batches


def everything(plan: StagePlan) -> list[list[tuple[str, list[int]]]]:
    return [[(d.task, d.rows.tolist()) for d in plan.draws(s)] for s in range(len(plan))]


@settings(deadline=None)
@given(st.sampled_from(SPECS), stages(), st.sampled_from([0.5, 1, 2, 3.5]))
def test_each_pass_over_a_task_visits_every_row_once(
    spec: ScheduleSpec, stage: dict[str, Any], epochs: float
) -> None:
    plan = StagePlan(spec, **stage, epochs=epochs, steps=None)
    for task, batches in rows_of(plan).items():
        size, rows = stage["sizes"][task], stage["rows_per_visit"][task]
        a_pass = -(-size // rows)
        for begin in range(0, len(batches), a_pass):
            walked = batches[begin : begin + a_pass]
            flat = [row for batch in walked for row in batch]
            assert len(set(flat)) == len(flat)
            assert set(flat) <= set(range(size))
            assert all(len(batch) == rows for batch in walked[: a_pass - 1])
            if len(walked) == a_pass:
                assert sorted(flat) == list(range(size))
                assert len(walked[-1]) == size - rows * (a_pass - 1)


@settings(deadline=None)
@given(st.sampled_from(SPECS), stages(), st.integers(1, 60), st.data())
def test_a_step_looked_up_alone_is_the_step_walked_to(
    spec: ScheduleSpec, stage: dict[str, Any], steps: int, data: st.DataObject
) -> None:
    walked = everything(StagePlan(spec, **stage, epochs=None, steps=steps))
    assert len(walked) == steps
    fresh = StagePlan(spec, **stage, epochs=None, steps=steps)
    step = data.draw(st.integers(0, steps - 1))
    assert [(draw.task, draw.rows.tolist()) for draw in fresh.draws(step)] == walked[step]
    for step in reversed(range(steps)):
        assert [(draw.task, draw.rows.tolist()) for draw in fresh.draws(step)] == walked[step]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.walk}")
def test_the_seed_alone_decides(spec: ScheduleSpec) -> None:
    sizes = {"sst": 70, "sts": 30, "qqp": 100}

    def of_seed(*seed: int) -> list[list[tuple[str, list[int]]]]:
        return everything(make_plan(spec, sizes, epochs=2, seed=seed))

    first = of_seed(1, 0)
    assert of_seed(1, 0) == first
    assert of_seed(2, 0) != first
    assert of_seed(1, 1) != first


def test_passes_are_shuffled_each_time_anew() -> None:
    batches = rows_of(make_plan(SCHEDULES["round-robin"](), {"sst": 50}, batch=50, epochs=3))["sst"]
    assert len({tuple(batch) for batch in [*batches, range(50)]}) == 4


def test_sequential_walks_whole_passes_in_the_given_order() -> None:
    order = ["sst", "sts", "sst", "sts", "qqp"]
    plan = make_plan(SCHEDULES["sequential"](order=order), {"qqp": 40, "sst": 25, "sts": 11})
    lengths = {"sst": 3, "sts": 2, "qqp": 4}
    assert tasks_of(plan) == [task for task in order for _ in range(lengths[task])]
    batches = rows_of(plan)["sst"]
    assert sorted(chain(*batches[:3])) == sorted(chain(*batches[3:])) == list(range(25))
    assert batches[:3] != batches[3:]


def test_sequential_without_order_takes_the_tasks_as_they_come() -> None:
    plan = make_plan(SCHEDULES["sequential"](), {"sts": 15, "sst": 15}, epochs=2)
    assert tasks_of(plan) == ["sts", "sts", "sst", "sst"] * 2


def test_round_robin_once_leaves_out_tasks_that_are_exhausted() -> None:
    spec = SCHEDULES["round-robin"](order=["sts", "sst", "qqp"])
    plan = make_plan(spec, {"sst": 30, "sts": 10, "qqp": 45}, epochs=2)
    epoch = ["sts", "sst", "qqp", "sst", "qqp", "sst", "qqp", "qqp", "qqp"]
    assert tasks_of(plan) == epoch * 2


def test_round_robin_cycle_repeats_the_small_ones_until_the_largest_is_done() -> None:
    spec = SCHEDULES["round-robin"](walk="cycle")
    plan = make_plan(spec, {"sst": 30, "sts": 10, "qqp": 45})
    assert tasks_of(plan) == ["sst", "sts", "qqp"] * 5
    assert sorted(chain(*rows_of(plan)["qqp"])) == list(range(45))
    assert all(sorted(batch) == list(range(10)) for batch in rows_of(plan)["sts"])


def test_round_robin_pays_a_task_as_many_visits_a_round_as_it_is_named() -> None:
    spec = SCHEDULES["round-robin"](order=["qqp", "qqp", "sst"])
    plan = make_plan(spec, {"sst": 20, "qqp": 40})
    assert tasks_of(plan) == ["qqp", "qqp", "sst", "qqp", "qqp", "sst"]


def test_together_once_goes_on_with_those_that_still_have_data() -> None:
    plan = make_plan(SCHEDULES["together"](), {"sst": 30, "sts": 10, "qqp": 45}, epochs=2)
    epoch = ["sst+sts+qqp", "sst+qqp", "sst+qqp", "qqp", "qqp"]
    assert tasks_of(plan) == epoch * 2


def test_together_cycle_has_every_task_in_every_step() -> None:
    spec = SCHEDULES["together"](walk="cycle")
    plan = make_plan(spec, {"sst": 30, "sts": 10, "qqp": 45})
    assert tasks_of(plan) == ["sst+sts+qqp"] * 5


def shares(plan: StagePlan, *, first: int = 0, last: int | None = None) -> dict[str, float]:
    tasks = tasks_of(plan)[first:last]
    return {task: count / len(tasks) for task, count in Counter(tasks).items()}


def test_random_obeys_its_weights() -> None:
    spec = SCHEDULES["random"](weights={"sst": 6, "sts": 3, "qqp": 1})
    plan = make_plan(spec, {"qqp": 500, "sts": 20, "sst": 20}, steps=4000)
    assert shares(plan) == pytest.approx({"sst": 0.6, "sts": 0.3, "qqp": 0.1}, abs=0.03)


def test_random_without_weights_is_even_whatever_the_sizes() -> None:
    plan = make_plan(SCHEDULES["random"](), {"qqp": 500, "sts": 20}, steps=4000)
    assert shares(plan) == pytest.approx({"qqp": 0.5, "sts": 0.5}, abs=0.03)


@settings(deadline=None)
@given(stages(), st.integers(1, 3))
def test_proportional_has_every_batch_of_every_task_once_an_epoch(
    stage: dict[str, Any], epochs: int
) -> None:
    plan = StagePlan(SCHEDULES["proportional"](), **stage, epochs=epochs, steps=None)
    batches = {
        task: -(-size // stage["rows_per_visit"][task]) for task, size in stage["sizes"].items()
    }
    assert plan.steps_per_epoch == sum(batches.values())
    tasks = tasks_of(plan)
    for begin in range(0, len(plan), plan.steps_per_epoch):
        assert Counter(tasks[begin : begin + plan.steps_per_epoch]) == batches


def test_proportional_is_shuffled_and_each_epoch_anew() -> None:
    plan = make_plan(SCHEDULES["proportional"](), {"sst": 200, "qqp": 200}, epochs=2)
    tasks = tasks_of(plan)
    assert tasks[:40] != tasks[40:]
    assert tasks[:40] != sorted(tasks[:40]) != tasks[40:]
    assert {"sst", "qqp"} == set(tasks[:15])


@pytest.mark.parametrize(("temperature", "large"), [(1.0, 900 / 1000), (2.0, 30 / 40), (1e6, 0.5)])
def test_temperature_draws_by_a_power_of_the_sizes(temperature: float, large: float) -> None:
    spec = SCHEDULES["temperature"](temperature=temperature)
    plan = make_plan(spec, {"qqp": 900, "sts": 100}, steps=4000)
    assert shares(plan) == pytest.approx({"qqp": large, "sts": 1 - large}, abs=0.03)


def test_annealed_begins_proportional_and_ends_nearly_even() -> None:
    plan = make_plan(SCHEDULES["annealed"](), {"qqp": 9000, "sts": 1000}, steps=20_000)
    power = 9**0.2
    assert shares(plan, last=1000)["qqp"] == pytest.approx(0.9, abs=0.04)
    assert shares(plan, first=-1000)["qqp"] == pytest.approx(power / (1 + power), abs=0.05)
    assert shares(plan, first=-1000)["qqp"] < shares(plan, first=9500, last=10_500)["qqp"] - 0.05


@pytest.mark.parametrize(("epochs", "steps"), [(1, 8), (3.5, 28), (0.5, 4), (0.01, 1), (2, 16)])
@pytest.mark.parametrize("kind", KINDS)
def test_epochs_may_be_fractions(kind: str, epochs: float, steps: int) -> None:
    plan = make_plan(SCHEDULES[kind](), {"sst": 30, "sts": 45}, epochs=epochs)
    assert plan.steps_per_epoch == 8
    assert len(plan) == steps


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.walk}")
def test_steps_are_taken_as_given(spec: ScheduleSpec) -> None:
    plan = make_plan(spec, {"sst": 30, "sts": 45}, steps=37)
    assert len(everything(plan)) == len(plan) == 37


def test_epochs_end_after_their_last_step_and_with_the_stage() -> None:
    plan = make_plan(SCHEDULES["round-robin"](), {"sst": 30, "sts": 45}, epochs=2.5)
    ends = [step for step in range(len(plan)) if plan.ends_epoch(step)]
    assert ends == [7, 15, 19]


@pytest.mark.parametrize("kind", ["random", "temperature", "annealed"])
def test_drawn_kinds_take_the_epoch_as_given(kind: str) -> None:
    spec = SCHEDULES[kind](steps_per_epoch=5)
    plan = make_plan(spec, {"sst": 30, "sts": 45}, epochs=3)
    assert len(plan) == 15
    assert [step for step in range(15) if plan.ends_epoch(step)] == [4, 9, 14]


def test_a_longer_stage_begins_like_a_shorter_one() -> None:
    for spec in SPECS:
        if spec.kind != "annealed":
            sizes = {"sst": 30, "sts": 45}
            short, long = make_plan(spec, sizes, steps=9), make_plan(spec, sizes, steps=40)
            assert everything(short) == everything(long)[:9]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.walk}")
def test_a_subset_is_drawn_anew_for_each_pass(spec: ScheduleSpec) -> None:
    plan = StagePlan(
        spec,
        sizes={"qqp": 40, "sst": 7},
        rows_per_visit={"qqp": 5, "sst": 5},
        epochs=6,
        steps=None,
        seed=(3, 0),
        subsets={"qqp": Subset(10)},
    )
    batches = rows_of(plan)["qqp"]
    passes = [sorted(a + b) for a, b in zip(batches[::2], batches[1::2], strict=False)]
    assert all(len(set(one)) == 10 for one in passes)
    assert len(set(map(tuple, passes))) == len(passes)


def test_a_balanced_subset_makes_classes_alike() -> None:
    labels = np.array([0] * 900 + [1] * 90 + [2] * 10)
    task = TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-sst"},
            "labels": ["a", "b", "c"],
            "subset": {"share": 0.6, "balanced": True},
            "single": {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}},
        }
    )
    subset = Subset.of_task(task, labels, rows=1000)
    assert subset is not None
    assert subset.count == 600
    sizes = {"t": 1000}
    plan = StagePlan(
        SCHEDULES["round-robin"](),
        sizes=sizes,
        rows_per_visit=sizes,
        epochs=5,
        steps=None,
        seed=(1, 0),
        subsets={"t": subset},
    )
    drawn = np.concatenate([labels[plan.draws(step)[0].rows] for step in range(len(plan))])
    assert len(drawn) == 3000
    # A thousand a class on average, with a deviation of 26.
    assert np.all(np.abs(np.bincount(drawn) - 1000) < 130)


def test_label_counts_make_frequent_classes_more_frequent() -> None:
    labels = np.array([0] * 30 + [1] * 10)
    task = TaskSpec.model_validate(
        {
            "data": {"layout": "cs224n-quora"},
            "labels": ["different", "paraphrase"],
            "subset": {"share": 1.0, "label_counts": True},
            "bi": {
                "head": {"kind": "features", "features": ["u", "v"]},
                "objective": {"kind": "cross-entropy"},
            },
        }
    )
    subset = Subset.of_task(task, labels, rows=40)
    assert subset is not None
    assert subset.likely is not None
    # The report's own way: torch's sampler with every row's label count as its weight.
    counts = np.bincount(labels)[labels]
    drawn = torch.tensor(list(WeightedRandomSampler(counts.tolist(), 20_000)))
    assert float(subset.likely[labels == 1].sum()) == pytest.approx(0.1)
    assert float((drawn >= 30).float().mean()) == pytest.approx(0.1, abs=0.01)
    plan = StagePlan(
        SCHEDULES["sequential"](),
        sizes={"qqp": 40},
        rows_per_visit={"qqp": 40},
        epochs=200,
        steps=None,
        seed=(7, 0),
        subsets={"qqp": subset},
    )
    rows = np.concatenate([draw.rows for step in range(len(plan)) for draw in plan.draws(step)])
    assert (rows >= 30).mean() == pytest.approx(0.1, abs=0.02)
