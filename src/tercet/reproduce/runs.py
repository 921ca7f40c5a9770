"""Running many experiments: each in a process of its own, so that one that fails stops no other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tercet.errors import TercetError
from tercet.recipe import bundled

FIRST_SEED = 11711


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


def run_all(
    names: Sequence[str],
    *,
    data: Path,
    out: Path,
    seeds: int,
    jobs: int,
    changes: Sequence[str],
    tell: Callable[[Outcome, int, int], None],
) -> list[Outcome]:
    """Train every recipe with every seed, `jobs` at once; those that are done are not done again.

    changes: `a.b=c` overrides of all recipes
    tell: told each outcome, how many there are by now, and how many there will be
    """
    experiments = [Experiment(name, FIRST_SEED + i) for name in names for i in range(seeds)]
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(jobs) as pool:
        waiting: list[Future[Outcome]] = [
            pool.submit(_run, one, data=data, out=out, changes=changes) for one in experiments
        ]
        try:
            for done in as_completed(waiting):
                outcomes.append(done.result())
                tell(outcomes[-1], len(outcomes), len(experiments))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    order = {experiment: place for place, experiment in enumerate(experiments)}
    return sorted(outcomes, key=lambda outcome: order[outcome.experiment])


def _run(experiment: Experiment, *, data: Path, out: Path, changes: Sequence[str]) -> Outcome:
    log = experiment.log(out)
    log.parent.mkdir(parents=True, exist_ok=True)
    folder = experiment.folder(out)
    command = [sys.executable, "-m", "tercet", "train", experiment.name, "--resume"]
    command += ["--data", str(data), "--out", str(folder), "--set", f"seed={experiment.seed}"]
    for change in changes:
        command += ["--set", change]
    with log.open("wb") as stream:
        ended = subprocess.run(command, stdout=stream, stderr=stream, check=False)
    return Outcome(experiment, None if ended.returncode == 0 else _reason(log, ended.returncode))


def _reason(log: Path, code: int) -> str:
    """The last thing that a failed experiment said."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    told = [line for line in lines if line.startswith("error: ")] or [x for x in lines if x]
    return told[-1].removeprefix("error: ") if told else f"ended with code {code} and no word"
