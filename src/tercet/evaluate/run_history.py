"""How a run went: its curves, the cosines between tasks' gradients, and what it forgot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tercet.errors import TercetError
from tercet.evaluate.results import predicting_modes
from tercet.recipe import Recipe
from tercet.specs import TaskSpec

POINTS = 240
"""At most so many on a curve: neighbours are averaged."""
ROWS = 12

Curve = list[tuple[float, float]]
"""(step, value), steps rising."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A task's figure at some point of a run, and how far it is below its best until then."""

    value: float | None
    forgotten: float | None


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of the forgetting matrix: where in the run, and each task's figure there."""

    stage: str
    step: int
    tasks: dict[str, Remembered]


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Curves of a run by task or pair of tasks.

    stages: name and first step of each, in order
    losses, cosines: means of neighbouring steps
    scores: each task's own metric on dev, and `score`, what the run was steered by
    forgetting: after each stage, or after each score where there is one stage
    """

    name: str
    steps: int
    stages: list[tuple[str, int]]
    losses: dict[str, Curve]
    cosines: dict[str, Curve]
    scores: dict[str, Curve]
    metrics: dict[str, str]
    forgetting: list[Moment]


def is_run(folder: Path) -> bool:
    return (folder / "recipe.toml").is_file() and (folder / "metrics.jsonl").is_file()


def read_run(folder: Path) -> RunHistory:
    """The history of a run folder, finished or not."""
    if not is_run(folder):
        raise TercetError(f"{folder}: is no run folder: it lacks recipe.toml or metrics.jsonl.")
    recipe = Recipe.load(folder / "recipe.toml")
    lines = _read_lines(folder / "metrics.jsonl")
    steps = [line for line in lines if "loss" in line]
    scores = [line for line in lines if "dev" in line]
    tasks = {name: task for name, task in recipe.tasks.items() if task.answers}
    return RunHistory(
        name=recipe.name,
        steps=max((line["step"] for line in lines), default=0),
        stages=_stages(lines),
        losses=_curves(steps, "loss"),
        cosines=_curves(steps, "cosine"),
        scores=_score_curves(scores, tasks),
        metrics={name: task.chosen_metric for name, task in tasks.items()},
        forgetting=_forgetting(scores, tasks),
    )


def _read_lines(file: Path) -> list[dict[str, Any]]:
    """All lines but a last one that a kill cut short."""
    lines = []
    content = file.read_bytes().split(b"\n")
    for number, line in enumerate(content[:-1], 1):
        try:
            lines.append(json.loads(line))
        except ValueError as error:
            raise TercetError(f"{file}, line {number}: is not JSON: {error}.") from error
    return lines


def _stages(lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    runs = groupby(lines, key=lambda line: line["stage"])
    return [(stage, next(group)["step"]) for stage, group in runs]


def _curves(lines: Iterable[Mapping[str, Any]], key: str) -> dict[str, Curve]:
    found: dict[str, Curve] = {}
    for line in lines:
        for name, value in line.get(key, {}).items():
            found.setdefault(name, []).append((line["step"], value))
    return {name: _thinned(curve) for name, curve in found.items()}


def _thinned(curve: Curve) -> Curve:
    """Means of neighbours, so that a long run stays small and its trend readable."""
    parts = np.array_split(np.array(curve), min(POINTS, len(curve)))
    means = [part.mean(axis=0) for part in parts]
    return [(float(step), float(value)) for step, value in means]


def _figures(line: Mapping[str, Any], tasks: Mapping[str, TaskSpec]) -> dict[str, float | None]:
    return {
        name: line["dev"][name][predicting_modes(task)[0]][task.chosen_metric]
        for name, task in tasks.items()
    }


def _score_curves(
    lines: Iterable[Mapping[str, Any]], tasks: Mapping[str, TaskSpec]
) -> dict[str, Curve]:
    found: dict[str, Curve] = {}
    for line in lines:
        for name, value in {**_figures(line, tasks), "score": line["score"]}.items():
            if value is not None:
                found.setdefault(name, []).append((line["step"], value))
    return found


def _forgetting(lines: list[dict[str, Any]], tasks: Mapping[str, TaskSpec]) -> list[Moment]:
    best: dict[str, float] = {}
    moments = []
    for line in lines:
        remembered = {}
        for name, value in _figures(line, tasks).items():
            before = best.get(name)
            forgotten = None if value is None or before is None else max(0.0, before - value)
            remembered[name] = Remembered(value, forgotten)
            if value is not None:
                best[name] = max(value, before if before is not None else value)
        moments.append(Moment(line["stage"], line["step"], remembered))
    ends = [list(group)[-1] for _, group in groupby(moments, key=lambda moment: moment.stage)]
    if len(ends) > 1:
        return ends
    picked = np.linspace(0, len(moments) - 1, min(ROWS, len(moments))).round().astype(int)
    return [moments[place] for place in picked]
