"""Running many experiments: each in a process of its own, so that one that fails stops no other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

from tercet.cores import shared_environment
from tercet.errors import TercetError
from tercet.files import write_text
from tercet.recipe import bundled, find_bundled
from tercet.specs import TeacherSpec

FIRST_SEED = 11711
_DEEPEST = 8  # teachers of teachers


@dataclass(frozen=True, slots=True)
class Experiment:
    """One recipe with one seed."""

    name: str
    seed: int

    def folder(self, out: Path) -> Path:
        """Its run folder."""
        return out / "runs" / self.name / f"seed-{self.seed}"

    def log(self, out: Path) -> Path:
        """What it said."""
        return out / "logs" / self.name / f"seed-{self.seed}.txt"

    def failure(self, out: Path) -> Path:
        """Why it failed, when it last did."""
        return self.log(out).with_suffix(".failure.txt")

    @classmethod
    def all_under(cls, out: Path, name: str) -> set[Experiment]:
        """Every seed of a recipe that was ever begun there."""
        begun = [*(out / "runs" / name).glob("seed-*"), *(out / "logs" / name).glob("seed-*")]
        return {cls(name, int(re.findall(r"\d+", path.name)[0])) for path in begun}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an experiment ended; `reason` is why it failed, None when it did not."""

    experiment: Experiment
    reason: str | None


def choose(names: Sequence[str]) -> list[str]:
    """Recipes by their names or by the part before the slash; all of the reports' without any."""
    known = {recipe.name: recipe for recipe in bundled()}
    if not names:
        return [name for name, recipe in known.items() if recipe.parse().report is not None]
    chosen: list[str] = []
    for name in names:
        found = [name] if name in known else [k for k in known if k.startswith(f"{name}/")]
        if not found:
            raise TercetError(
                f"{name}: no recipe and no group of them; `tercet recipes` lists all."
            )
        chosen += [one for one in found if one not in chosen]
    return chosen


def with_earlier(outcomes: Sequence[Outcome], out: Path) -> list[Outcome]:
    """These outcomes and those of all experiments that earlier calls ended under `out`, by name.

    An experiment that this call has an outcome for is not told twice.
    """
    known = {outcome.experiment: outcome for outcome in outcomes}
    for recipe in bundled():
        for one in Experiment.all_under(out, recipe.name) - known.keys():
            if (one.folder(out) / "summary.json").is_file():
                known[one] = Outcome(one, None)
            elif one.failure(out).is_file():
                known[one] = Outcome(one, one.failure(out).read_text("utf-8"))
    return sorted(known.values(), key=lambda outcome: astuple(outcome.experiment))


def run_all(
    names: Sequence[str],
    *,
    data: Path,
    out: Path,
    seeds: int,
    jobs: int,
    changes: Sequence[str],
    from_scratch: bool = False,
    tell: Callable[[Outcome, list[Outcome], int], None],
) -> list[Outcome]:
    """Train every recipe with every seed, `jobs` at once; those that are done are not done again.

    changes: `a.b=c` overrides of all recipes
    from_scratch: train the teachers of all recipes first, each where its recipe is named
    tell: told each outcome, all there are by now, in the order of the experiments, and how many
        there will be
    """
    experiments = [Experiment(name, FIRST_SEED + i) for name in names for i in range(seeds)]
    turns = in_turns(experiments) if from_scratch else [experiments]
    order = {one: place for place, one in enumerate(one for turn in turns for one in turn)}
    outcomes: list[Outcome] = []

    def heard(outcome: Outcome) -> None:
        _remember(outcome, out)
        outcomes.append(outcome)
        outcomes.sort(key=lambda outcome: order[outcome.experiment])
        tell(outcome, outcomes, len(order))

    for turn in turns:
        environment = shared_environment(min(jobs, len(turn)))
        works: list[Callable[[], Outcome]] = []
        for one in turn:
            failed = _failed_teacher(one, outcomes) if from_scratch else None
            if failed is not None:
                heard(Outcome(one, f"its teacher {failed.name} with seed {failed.seed} failed"))
                continue
            own = teacher_changes(one, out) if from_scratch else []
            works.append(
                partial(
                    _run, one, data=data, out=out, changes=[*changes, *own], environment=environment
                )
            )
        _at_once(works, jobs=jobs, heard=heard)
    return outcomes


def in_turns(experiments: Sequence[Experiment]) -> list[list[Experiment]]:
    """Experiments in an order in which all teachers come before those whom they teach."""
    turns = [list(experiments)]
    while True:
        teachers = [teacher for one in turns[0] for teacher in _teachers(one.name)]
        if not teachers:
            break
        turns.insert(0, list(dict.fromkeys(teachers)))
        if len(turns) > _DEEPEST:
            raise TercetError(f"{experiments[0].name}: its teachers teach each other in a circle.")
    done: set[Experiment] = set()
    for turn in turns:
        turn[:] = [one for one in turn if one not in done]
        done |= set(turn)
    return turns


def teacher_changes(experiment: Experiment, out: Path) -> list[str]:
    """Overrides that let a recipe learn from the teachers that were trained under `out`."""
    return [
        f"tasks.{name}.teacher.folder="
        + json.dumps([str(teacher.folder(out).resolve()) for teacher in _ensemble(task.teacher)])
        for name, task in find_bundled(experiment.name).parse().tasks.items()
        if task.teacher is not None and task.teacher.recipe is not None
    ]


def _teachers(name: str) -> list[Experiment]:
    tasks = find_bundled(name).parse().tasks.values()
    return [one for task in tasks if task.teacher is not None for one in _ensemble(task.teacher)]


def _failed_teacher(student: Experiment, outcomes: Sequence[Outcome]) -> Experiment | None:
    teachers = _teachers(student.name)
    failed = (one.experiment for one in outcomes if one.reason is not None)
    return next((one for one in failed if one in teachers), None)


def _ensemble(teacher: TeacherSpec) -> list[Experiment]:
    """As many seeds of a teacher's recipe as the recipe that it teaches in names folders."""
    if teacher.recipe is None:
        return []
    return [Experiment(teacher.recipe, FIRST_SEED + i) for i in range(len(teacher.folder))]


def _at_once(
    works: Sequence[Callable[[], Outcome]], *, jobs: int, heard: Callable[[Outcome], None]
) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[Future[Outcome]] = [pool.submit(work) for work in works]
        try:
            for done in as_completed(waiting):
                heard(done.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _run(
    experiment: Experiment,
    *,
    data: Path,
    out: Path,
    changes: Sequence[str],
    environment: Mapping[str, str],
) -> Outcome:
    log = experiment.log(out)
    log.parent.mkdir(parents=True, exist_ok=True)
    folder = experiment.folder(out)
    command = [sys.executable, "-m", "tercet", "train", experiment.name, "--resume"]
    command += ["--data", str(data), "--out", str(folder), "--set", f"seed={experiment.seed}"]
    for change in changes:
        command += ["--set", change]
    with log.open("wb") as stream:
        ended = subprocess.run(command, stdout=stream, stderr=stream, env=environment, check=False)
    return Outcome(experiment, None if ended.returncode == 0 else _reason(log, ended.returncode))


def _remember(outcome: Outcome, out: Path) -> None:
    """Leave the reason of a failure to later calls."""
    failure = outcome.experiment.failure(out)
    if outcome.reason is None:
        failure.unlink(missing_ok=True)
        return
    failure.parent.mkdir(parents=True, exist_ok=True)
    write_text(failure, outcome.reason)


def _reason(log: Path, code: int) -> str:
    """The last thing that a failed experiment said."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    told = [line for line in lines if line.startswith("error: ")] or [x for x in lines if x]
    return told[-1].removeprefix("error: ") if told else f"ended with code {code} and no word"
