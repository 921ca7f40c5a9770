"""The history of a run: its curves, the cosines between tasks' gradients, and what it forgot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tercet.errors import TercetError
from tercet.evaluation import presentation as show
from tercet.evaluation.metrics import Values
from tercet.evaluation.scoring import best_mode
from tercet.evaluation.simple_scores import Baselines, read_baselines
from tercet.files import parse_json, read_json_object, reading
from tercet.recipe import Recipe
from tercet.specs import TaskSpec

POINTS = 240
"""Per curve; neighbours are averaged."""
ROWS = 12
"""Of the forgetting table, where there is one stage."""

Curve = list[tuple[float, float]]
"""(step, value), steps rising."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A task's metric at a point of a run, and how far it is below its best so far."""

    value: float | None
    forgotten: float | None


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of the forgetting table: a point of the run, and each task's metric there."""

    stage: str
    step: int
    tasks: dict[str, Remembered]


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Curves of a run, by task or pair of tasks.

    stages: name and first step of each, in order
    losses, cosines: means of neighbouring steps
    scores: each task's metric on dev, and `score`, by which the best model is chosen, if it differs
    forgetting: after each stage, or at points spread over a single stage
    baselines: the scores of simple baselines, where they were measured
    warnings: what the end of training warned of
    shortage: which of these says what time did not allow; None where it allowed everything
    """

    name: str
    steps: int
    stages: list[tuple[str, int]]
    losses: dict[str, Curve]
    cosines: dict[str, Curve]
    scores: dict[str, Curve]
    metrics: dict[str, str]
    forgetting: list[Moment]
    baselines: Baselines = field(default_factory=dict)
    warnings: Sequence[str] = ()
    shortage: str | None = None


def run_of(source: str) -> Path | None:
    """The run folder that a model's source is, or that contains it."""
    folder = Path(source).resolve()
    return next((each for each in (folder, folder.parent) if is_run(each)), None)


def is_run(folder: Path) -> bool:
    return (folder / "recipe.toml").is_file() and (folder / "metrics.jsonl").is_file()


def read_run(folder: Path) -> RunHistory:
    """The history of a run folder, finished or not."""
    if not is_run(folder):
        raise TercetError(f"{folder}: is not a run folder: it lacks recipe.toml or metrics.jsonl.")
    with reading(folder):
        return _read_run(folder)


def _read_run(folder: Path) -> RunHistory:
    recipe = Recipe.load(folder / "recipe.toml")
    lines = _read_lines(folder / "metrics.jsonl")
    steps = [line for line in lines if "loss" in line]
    scores = [line for line in lines if "dev" in line]
    scored = {name for line in scores for name in line["dev"]}
    tasks = {name: task for name, task in recipe.tasks.items() if name in scored}
    file = folder / "summary.json"
    summary = read_json_object(file) if file.is_file() else {}
    shortage = summary.get("shortage")
    return RunHistory(
        name=recipe.name,
        steps=max((line["step"] for line in lines), default=0),
        stages=_stages(lines),
        losses=_curves(steps, "loss"),
        cosines=_curves(steps, "cosine"),
        scores=_score_curves(scores, tasks),
        metrics={name: task.chosen_metric for name, task in tasks.items()},
        forgetting=_forgetting(scores, tasks),
        baselines=read_baselines(folder),
        warnings=[str(sentence) for sentence in summary.get("warnings", [])],
        shortage=None if shortage is None else _text(shortage),
    )


def _read_lines(file: Path) -> list[dict[str, Any]]:
    """All lines, without a last one that is incomplete because the run was killed."""
    lines = []
    content = file.read_bytes().split(b"\n")
    for number, line in enumerate(content[:-1], 1):
        try:
            lines.append(parse_json(line))
        except ValueError as error:
            raise TercetError(f"{file}, line {number}: is not JSON: {error}.") from error
    return lines


def _stages(lines: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    runs = groupby(lines, key=lambda line: line["stage"])
    return [(_text(stage), next(group)["step"]) for stage, group in runs]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} should be a string")
    return value


def _curves(lines: Iterable[Mapping[str, Any]], key: str) -> dict[str, Curve]:
    curves: dict[str, Curve] = {}
    for line in lines:
        for name, value in line.get(key, {}).items():
            curves.setdefault(name, []).append((line["step"], value))
    return {name: _thinned(curve) for name, curve in curves.items()}


def _thinned(curve: Curve) -> Curve:
    """Means of neighbours, so that a long run stays small and its trend visible."""
    parts = np.array_split(np.array(curve), min(POINTS, len(curve)))
    means = [part.mean(axis=0) for part in parts]
    return [(float(step), float(value)) for step, value in means]


def _chosen_metrics(line: Mapping[str, Any], tasks: Mapping[str, TaskSpec]) -> Values:
    return {
        name: line["dev"].get(name, {}).get(best_mode(task), {}).get(task.chosen_metric)
        for name, task in tasks.items()
    }


def _score_curves(
    lines: Iterable[Mapping[str, Any]], tasks: Mapping[str, TaskSpec]
) -> dict[str, Curve]:
    curves: dict[str, Curve] = {}
    for line in lines:
        for name, value in {**_chosen_metrics(line, tasks), "score": line["score"]}.items():
            if value is not None:
                curves.setdefault(name, []).append((line["step"], float(value)))
    if len(tasks) == 1 and curves.get("score") == curves.get(*tasks):
        curves.pop("score", None)
    return curves


def _forgetting(lines: list[dict[str, Any]], tasks: Mapping[str, TaskSpec]) -> list[Moment]:
    best: dict[str, float] = {}
    moments = []
    for line in lines:
        remembered = {}
        for name, value in _chosen_metrics(line, tasks).items():
            before = best.get(name)
            forgotten = None if value is None or before is None else max(0.0, before - value)
            remembered[name] = Remembered(value, forgotten)
            if value is not None:
                best[name] = max(value, before if before is not None else value)
        moments.append(Moment(line["stage"], line["step"], remembered))
    ends = [list(group)[-1] for _, group in groupby(moments, key=lambda moment: moment.stage)]
    if len(ends) > 1:
        return ends
    return [moments[place] for place in show.spread(len(moments), ROWS)]


def training_section(run: RunHistory) -> show.Section:
    stages = ", ".join(name for name, _ in run.stages)
    return show.Section(
        title="Training",
        intro=f"The run of {run.name}: {run.steps:,} steps; stages: {stages or 'none yet'}.",
        charts=_charts(run),
        tables=[_forgetting_table(run)] if run.forgetting else [],
    )


def _charts(run: RunHistory) -> list[show.Chart]:
    """Metrics on dev, losses by task, and cosines between the tasks' gradients."""
    charts = []
    if run.scores:
        charts.append(_chart(run, run.scores, "Metrics on dev", "metric", marked=True))
    charts += [
        _chart(run, {task: curve}, f"Loss of {task}", "loss") for task, curve in run.losses.items()
    ]
    if run.cosines:
        charts.append(_chart(run, run.cosines, "Cosines between gradients", "cosine"))
    return charts


def _chart(
    run: RunHistory, curves: Mapping[str, Curve], title: str, label: str, *, marked: bool = False
) -> show.Chart:
    sentences = [
        f"{name}: from {curve[0][1]:.3f} at step {curve[0][0]:,.0f} to {curve[-1][1]:.3f} at step "
        f"{curve[-1][0]:,.0f}"
        for name, curve in curves.items()
    ]
    values = [value for curve in curves.values() for _, value in curve]
    kind: Literal["marked", "line"] = "marked" if marked else "line"
    return show.Chart(
        title=title,
        alternative=f"{title} over {run.steps:,} steps. {'. '.join(sentences)}.",
        x=show.Axis("step", 0.0, float(run.steps)),
        y=show.Axis(label, *show.padded(values, least=1e-3)),
        series=[show.Series(name, curve, kind=kind) for name, curve in curves.items()],
        marks=[(float(step), stage) for stage, step in run.stages] if len(run.stages) > 1 else [],
    )


def _forgetting_table(run: RunHistory) -> show.Table:
    """Each task's metric after each stage, and how far it is below its best so far."""
    rows = []
    for moment in run.forgetting:
        cells = [
            show.Cell(_remembered(task.value, task.forgotten), task.value)
            for task in moment.tasks.values()
        ]
        rows.append([show.Cell(f"{moment.stage}, step {moment.step:,}", moment.step), *cells])
    names = [f"{task} ({metric})" for task, metric in run.metrics.items()]
    return show.Table(
        caption="What was kept and forgotten: metrics on dev, and their distance from their best",
        columns=["After", *names],
        rows=rows,
    )


def _remembered(value: float | None, forgotten: float | None) -> str:
    return show.decimal(value) + (f" (−{forgotten:.3f})" if forgotten else "")
