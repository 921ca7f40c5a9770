"""From scratch: teachers are trained before their students, which get their folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tercet.cores import THREADS
from tercet.recipe import Recipe
from tercet.reproduce import runs
from tercet.reproduce.runs import (
    FIRST_SEED,
    Experiment,
    Outcome,
    run_all,
    teachers_first,
    with_earlier,
)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Experiment, Sequence[str]]]:
    """What was run, with which changes; nothing is really trained."""
    found: list[tuple[Experiment, Sequence[str]]] = []

    def run(experiment: Experiment, *, changes: Sequence[str], **others: Any) -> Outcome:
        found.append((experiment, changes))
        return Outcome(experiment, None)

    monkeypatch.setattr(runs, "_run", run)
    return found


def run_one(out: Path, *, from_scratch: bool) -> list[Outcome]:
    return run_all(
        ["tercet/small"],
        data=Path(),
        out=out,
        seeds=1,
        jobs=2,
        changes=[],
        from_scratch=from_scratch,
        report=lambda *message: None,
    )


def test_the_teacher_comes_first_and_its_students_learn_from_it(
    done: list[tuple[Experiment, Sequence[str]]], tmp_path: Path
) -> None:
    result: list[tuple[int, int]] = []
    outcomes = run_all(
        ["tercet/small"],
        data=Path(),
        out=tmp_path,
        seeds=2,
        jobs=2,
        changes=["seed=5"],
        from_scratch=True,
        report=lambda outcome, outcomes, total: result.append((len(outcomes), total)),
    )
    assert result == [(place, 5) for place in range(1, 6)]
    teachers = [Experiment("tercet/base", FIRST_SEED + i) for i in range(3)]
    assert [outcome.experiment for outcome in outcomes] == [
        *teachers,
        Experiment("tercet/small", FIRST_SEED),
        Experiment("tercet/small", FIRST_SEED + 1),
    ]
    changes = dict(done)
    assert all(changes[teacher] == ["seed=5"] for teacher in teachers)
    recipe = Recipe.load("tercet/small", changes[Experiment("tercet/small", FIRST_SEED)])
    folders = [str(teacher.folder(tmp_path).resolve()) for teacher in teachers]
    for task in recipe.tasks.values():
        if task.teacher is not None and task.teacher.recipe is not None:
            assert task.teacher.folder == folders
    assert recipe.tasks["vectors"].teacher is not None
    assert recipe.tasks["vectors"].teacher.folder == ["all-minilm-l6-v2"]


def test_nobody_learns_from_a_teacher_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[str] = []

    def run(experiment: Experiment, **others: Any) -> Outcome:
        ran.append(experiment.name)
        return Outcome(experiment, "no memory" if experiment.seed == FIRST_SEED + 1 else None)

    monkeypatch.setattr(runs, "_run", run)
    outcomes = run_one(tmp_path, from_scratch=True)
    assert ran == ["tercet/base"] * 3
    assert [outcome.reason for outcome in outcomes] == [
        *(None, "no memory", None),
        f"its teacher tercet/base with seed {FIRST_SEED + 1} failed",
    ]
    failed = [outcome for outcome in outcomes if outcome.reason is not None]
    assert with_earlier([], tmp_path) == failed
    monkeypatch.setattr(runs, "_run", lambda experiment, **others: Outcome(experiment, None))
    run_one(tmp_path, from_scratch=True)
    assert with_earlier([], tmp_path) == []


def test_without_it_recipes_run_as_they_are(
    done: list[tuple[Experiment, Sequence[str]]], tmp_path: Path
) -> None:
    run_one(tmp_path, from_scratch=False)
    assert done == [(Experiment("tercet/small", FIRST_SEED), [])]


def test_an_ensemble_is_as_many_seeds_and_each_trains_once() -> None:
    base, small = Experiment("tercet/base", FIRST_SEED), Experiment("tercet/small", FIRST_SEED)
    turns = teachers_first([small, base])
    seeds = [Experiment("tercet/base", FIRST_SEED + i) for i in range(3)]
    assert turns == [seeds, [small]]


def finish(experiment: Experiment, out: Path, *changes: str, model: bool = False) -> None:
    """A finished run, of which records are kept and perhaps the model."""
    folder = experiment.folder(out)
    folder.mkdir(parents=True)
    recipe = Recipe.load(experiment.name, [f"seed={experiment.seed}", *changes])
    (folder / "recipe.toml").write_text(recipe.to_toml())
    (folder / "summary.json").write_text("{}")
    if model:
        (folder / "model").mkdir()


def test_finished_runs_are_kept_however_patient_they_were(
    done: list[tuple[Experiment, Sequence[str]]], tmp_path: Path
) -> None:
    names = ["siamese/sts-mse", "siamese/sts-l1", "bertology/needs"]
    kept, other, patient = (Experiment(name, FIRST_SEED) for name in names)
    finish(kept, tmp_path, "checkpoint.every=0")
    finish(other, tmp_path, "stages.0.optimiser.lr=1e-4")
    finish(patient, tmp_path, "evaluation.patience=39")
    counts: list[tuple[int, int]] = []
    outcomes = run_all(
        names,
        data=tmp_path,
        out=tmp_path,
        seeds=2,
        jobs=1,
        changes=["evaluation.patience=3"],
        minutes=1.0,
        report=lambda *_: None,
        found=lambda *numbers: counts.append(numbers),
    )
    assert counts == [(2, 6)]
    second = [Experiment(name, FIRST_SEED + 1) for name in names]
    assert [experiment for experiment, _ in done] == [other, *second]
    assert [outcome.experiment for outcome in outcomes] == [kept, other, patient, *second]


@pytest.mark.parametrize(("model", "runs_again"), [(False, False), (True, True)])
def test_train_scores_are_added_to_finished_runs_whose_model_is_there(
    model: bool,
    runs_again: bool,
    done: list[tuple[Experiment, Sequence[str]]],
    tmp_path: Path,
) -> None:
    finish(Experiment("sbert/exp1", FIRST_SEED), tmp_path, model=model)
    (outcome,) = run_all(
        ["sbert/exp1"],
        data=tmp_path,
        out=tmp_path,
        seeds=1,
        jobs=1,
        changes=[],
        train_scores=True,
        report=lambda *_: None,
    )
    assert outcome.reason is None
    assert bool(done) == runs_again


@pytest.mark.parametrize(("jobs", "message"), [(2, "4"), (8, "2"), (1, None)])
def test_those_that_run_at_once_share_the_cores(
    jobs: int, message: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv(THREADS, raising=False)
    found: list[str | None] = []

    def run(command: list[str], *, env: dict[str, str], **_: Any) -> CompletedProcess[bytes]:
        found.append(env.get(THREADS))
        return CompletedProcess(command, 0)

    monkeypatch.setattr(runs.subprocess, "run", run)
    names = ["siamese/sts-mse", "siamese/sts-l1"]
    run_all(
        names, data=tmp_path, out=tmp_path, seeds=2, jobs=jobs, changes=[], report=lambda *_: None
    )
    assert found == [message] * 4


@pytest.mark.parametrize(("minutes", "started"), [(None, 4), (1.5, 2), (0.0, 0)])
def test_after_its_minutes_nothing_is_started_and_first_seeds_come_first(
    minutes: float | None, started: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, found = [0.0], []

    def run(experiment: Experiment, **_: Any) -> Outcome:
        now[0] += 60.0
        found.append(experiment)
        return Outcome(experiment, None)

    monkeypatch.setattr(runs, "_run", run)
    monkeypatch.setattr(runs.time, "monotonic", lambda: now[0])
    names = ["siamese/sts-mse", "siamese/sts-l1"]
    outcomes = run_all(
        names,
        data=tmp_path,
        out=tmp_path,
        seeds=2,
        jobs=1,
        changes=[],
        minutes=minutes,
        report=lambda *_: None,
    )
    order = [Experiment(name, FIRST_SEED + seed) for seed in range(2) for name in names]
    assert found == order[:started] == [outcome.experiment for outcome in outcomes]
