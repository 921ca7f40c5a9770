"""Running experiments, each in its own process, so that a failed one does not stop the others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from tercet.cores import shared_environment
from tercet.errors import TercetError, nearest
from tercet.files import write_text
from tercet.recipe import Recipe, bundled, find_bundled
from tercet.reproduce.train_scores import TRAIN_FILE, write_train_scores
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
        """Its output."""
        return out / "logs" / self.name / f"seed-{self.seed}.txt"

    def failure(self, out: Path) -> Path:
        """Why it failed the last time."""
        return self.log(out).with_suffix(".failure.txt")

    @classmethod
    def all_under(cls, out: Path, name: str) -> set[Experiment]:
        """Every seed of a recipe that was ever started there."""
        started = [*(out / "runs" / name).glob("seed-*"), *(out / "logs" / name).glob("seed-*")]
        return {cls(name, int(re.findall(r"\d+", path.name)[0])) for path in started}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an experiment ended; `reason`: why it failed, or None."""

    experiment: Experiment
    reason: str | None


def choose(names: Sequence[str]) -> list[str]:
    """Recipes by name or by the part before the slash; default: all of the reports."""
    known = {recipe.name: recipe for recipe in bundled()}
    if not names:
        return [name for name, recipe in known.items() if recipe.parse().report is not None]
    chosen: list[str] = []
    for name in names:
        matches = [name] if name in known else [k for k in known if k.startswith(f"{name}/")]
        if not matches:
            groups = dict.fromkeys(each.partition("/")[0] for each in known)
            hint = nearest(name, [*known, *groups])
            raise TercetError(
                f"{name}: neither a recipe nor a group of recipes{hint}; `tercet recipes` lists "
                "all."
            )
        chosen += [match for match in matches if match not in chosen]
    return chosen


def is_finished(experiment: Experiment, out: Path, changes: Sequence[str]) -> bool:
    """Whether its folder holds a finished run of the recipe with these changes.

    How often a run was saved and how patient it was may differ: rows of one table do, and its facts
    say so. Of a run that was moved, the recipe and the summary are enough.
    """
    folder = experiment.folder(out)
    if not all((folder / name).is_file() for name in ("summary.json", "recipe.toml")):
        return False
    try:
        own = Recipe.load(experiment.name, [*changes, f"seed={experiment.seed}"])
        return _method(own) == _method(Recipe.load(folder / "recipe.toml"))
    except TercetError:
        return False  # its run says why


def _method(recipe: Recipe) -> dict[str, Any]:
    """The keys that two finished runs of one experiment have in common."""
    keys = recipe.training()
    del keys["checkpoint"]
    keys["evaluation"].pop("patience", None)
    return keys


def with_earlier(outcomes: Sequence[Outcome], out: Path) -> list[Outcome]:
    """These outcomes, and those of other experiments of earlier calls under `out`, by name."""
    known = {outcome.experiment: outcome for outcome in outcomes}
    for recipe in bundled():
        for earlier in Experiment.all_under(out, recipe.name) - known.keys():
            if (earlier.folder(out) / "summary.json").is_file():
                known[earlier] = Outcome(earlier, None)
            elif earlier.failure(out).is_file():
                known[earlier] = Outcome(earlier, earlier.failure(out).read_text("utf-8"))
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
    train_scores: bool = False,
    minutes: float | None = None,
    report: Callable[[Outcome, list[Outcome], int], None],
    found: Callable[[int, int], None] = lambda finished, total: None,
) -> list[Outcome]:
    """Train every recipe with every seed, `jobs` in parallel; finished ones are not run again.

    All recipes come with their first seed before any comes with its second.

    changes: `a.b=c` overrides of all recipes
    from_scratch: train the teachers of all recipes first, where their recipe is named
    train_scores: also score recipes on their training rows, where their report does
    minutes: after this time no experiment is started, and those left have no outcome
    report: called with the outcome of each experiment that ran, all outcomes so far in the order of
        the experiments, and the number of experiments
    found: called with the number of experiments that need not run again, and that of all
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    experiments = [Experiment(name, FIRST_SEED + i) for i in range(seeds) for name in names]
    rounds = teachers_first(experiments) if from_scratch else [experiments]
    order = {experiment: place for place, experiment in enumerate(chain.from_iterable(rounds))}
    outcomes: list[Outcome] = []

    def collect(outcome: Outcome) -> None:
        _store_failure(outcome, out)
        outcomes.append(outcome)
        outcomes.sort(key=lambda outcome: order[outcome.experiment])
        report(outcome, outcomes, len(order))

    own = {
        each: [*changes, *(teacher_changes(each, out) if from_scratch else [])] for each in order
    }
    finished = {
        each
        for each in order
        if is_finished(each, out, own[each])
        and not (train_scores and _lacks_train_scores(each, out))
    }
    outcomes += [Outcome(each, None) for each in order if each in finished]
    for outcome in outcomes:
        _store_failure(outcome, out)
    found(len(finished), len(order))
    for experiments in rounds:
        waiting = [each for each in experiments if each not in finished]
        environment = shared_environment(min(jobs, max(len(waiting), 1)))
        runs: list[Callable[[], Outcome]] = []
        for each in waiting:
            failed = _failed_teacher(each, outcomes) if from_scratch else None
            if failed is not None:
                reason = f"its teacher {failed.name} with seed {failed.seed} failed"
                collect(Outcome(each, reason))
                continue
            run = partial(
                _run, each, data=data, out=out, changes=own[each], environment=environment
            )
            runs.append(partial(run, train_scores=train_scores))
        _in_parallel(runs, jobs=jobs, end=end, collect=collect)
    return outcomes


def teachers_first(experiments: Sequence[Experiment]) -> list[list[Experiment]]:
    """Experiments in rounds, so that all teachers come before those that they teach."""
    rounds = [list(experiments)]
    while True:
        teachers = [teacher for student in rounds[0] for teacher in _teachers(student.name)]
        if not teachers:
            break
        rounds.insert(0, list(dict.fromkeys(teachers)))
        if len(rounds) > _DEEPEST:
            raise TercetError(f"{experiments[0].name}: its teachers teach each other in a circle.")
    done: set[Experiment] = set()
    for each in rounds:
        each[:] = [experiment for experiment in each if experiment not in done]
        done |= set(each)
    return rounds


def teacher_changes(experiment: Experiment, out: Path) -> list[str]:
    """Overrides that make a recipe learn from the teachers trained under `out`."""
    return [
        f"tasks.{name}.teacher.folder="
        + json.dumps([str(teacher.folder(out).resolve()) for teacher in _ensemble(task.teacher)])
        for name, task in find_bundled(experiment.name).parse().tasks.items()
        if task.teacher is not None and task.teacher.recipe is not None
    ]


def _teachers(name: str) -> list[Experiment]:
    tasks = find_bundled(name).parse().tasks.values()
    teachers = [task.teacher for task in tasks if task.teacher is not None]
    return [member for teacher in teachers for member in _ensemble(teacher)]


def _failed_teacher(student: Experiment, outcomes: Sequence[Outcome]) -> Experiment | None:
    teachers = _teachers(student.name)
    failed = (outcome.experiment for outcome in outcomes if outcome.reason is not None)
    return next((experiment for experiment in failed if experiment in teachers), None)


def _ensemble(teacher: TeacherSpec) -> list[Experiment]:
    """As many seeds of a teacher's recipe as the student's recipe names folders."""
    if teacher.recipe is None:
        return []
    return [Experiment(teacher.recipe, FIRST_SEED + i) for i in range(len(teacher.folder))]


def _in_parallel(
    runs: Sequence[Callable[[], Outcome]],
    *,
    jobs: int,
    end: float | None,
    collect: Callable[[Outcome], None],
) -> None:
    """Call every run and collect what it gives; after `end`, by the monotonic clock, call none."""

    def before_end(run: Callable[[], Outcome]) -> Outcome | None:
        return run() if end is None or time.monotonic() < end else None

    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[Future[Outcome | None]] = [pool.submit(before_end, run) for run in runs]
        try:
            for done in as_completed(waiting):
                if (outcome := done.result()) is not None:
                    collect(outcome)
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
    train_scores: bool,
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
    code = ended.returncode
    if code == 0 and train_scores and _lacks_train_scores(experiment, out):
        code = write_train_scores(folder, data=data, log=log, environment=environment)
    return Outcome(experiment, None if code == 0 else _reason(log, code))


def _lacks_train_scores(experiment: Experiment, out: Path) -> bool:
    """Whether its report scores training rows, and its model is there to score them too."""
    folder = experiment.folder(out)
    published = find_bundled(experiment.name).parse().published_train is not None
    return published and not (folder / TRAIN_FILE).is_file() and (folder / "model").is_dir()


def _store_failure(outcome: Outcome, out: Path) -> None:
    """Write the reason of a failure for later calls."""
    failure = outcome.experiment.failure(out)
    if outcome.reason is None:
        failure.unlink(missing_ok=True)
        return
    failure.parent.mkdir(parents=True, exist_ok=True)
    write_text(failure, outcome.reason)


def _reason(log: Path, code: int) -> str:
    """The last error, or the last line, of a failed experiment."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    reasons = [line for line in lines if line.startswith("error: ")] or [x for x in lines if x]
    return reasons[-1].removeprefix("error: ") if reasons else f"exit code {code}, no message"
