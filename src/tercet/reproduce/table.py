"""Published and measured results, as Markdown and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy import stats

from tercet.evaluation.scoring import best_mode
from tercet.files import read_json_object, reading, write_json, write_text
from tercet.recipe import Recipe, find_bundled
from tercet.reproduce.facts import reading_changes
from tercet.reproduce.runs import Outcome, with_earlier
from tercet.reproduce.train_scores import TRAIN_FILE

TASKS = {"sentiment": "SST", "paraphrase": "paraphrase", "similarity": "STS"}
_OTHER_DATA = {"cs224n-cfimdb": "CFIMDB's reviews, not SST"}
_NORMAL = 1.959964
_SHOWN = 3  # changed keys of an older reading
OLDER = "older"
"""The folder of runs whose recipe has been corrected since, in which they lie as in `out`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A task's metric on dev.

    values: one per seed
    interval: 95 %, over seeds (Student's t) where there are several, else over dev rows
    """

    metric: str
    values: list[float]
    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """One recipe: published and measured metrics, and why seeds failed.

    published_train, published_test: on other rows than dev, where the report gives them
    measured_train: the mean over the seeds that were scored on training rows
    kept: whether the weights of the best epoch on dev or of the last one are scored
    commits: of the code that the seeds were trained with
    remarks: where its data are not those that a column is named after, or its recipe is older
    """

    name: str
    report: str | None
    summary: str
    published: Mapping[str, float]
    published_train: Mapping[str, float]
    published_test: Mapping[str, float]
    measured: Mapping[str, Measured]
    measured_train: Mapping[str, float]
    kept: str
    commits: list[str]
    remarks: list[str]
    failures: list[str]


def build_rows(outcomes: Sequence[Outcome], out: Path) -> list[ExperimentRow]:
    """One row per recipe that was run, in order; also for those that failed."""
    by_name: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_name.setdefault(outcome.experiment.name, []).append(outcome)
    with reading(out):
        return [_row(name, of_name, out) for name, of_name in by_name.items()]


def _row(name: str, outcomes: Sequence[Outcome], out: Path) -> ExperimentRow:
    recipe = find_bundled(name).parse()
    done = [outcome.experiment.folder(out) for outcome in outcomes if outcome.reason is None]
    summaries = [read_json_object(folder / "summary.json") for folder in done]
    tasks = [task for task in TASKS if task in recipe.tasks] if summaries else []
    measured = {
        task: _measure(recipe, task, summaries) for task in tasks if task in summaries[0]["dev"]
    }
    return ExperimentRow(
        name=name,
        report=recipe.report,
        summary=recipe.summary,
        published=recipe.published or {},
        published_train=recipe.published_train or {},
        published_test=recipe.published_test or {},
        measured=measured,
        measured_train=_on_train(recipe, done),
        kept=recipe.evaluation_of(recipe.stages[-1]).keep,
        commits=sorted({_commit(summary) for summary in summaries}),
        remarks=_remarks(recipe),
        failures=[
            f"seed {outcome.experiment.seed}: {outcome.reason}"
            for outcome in outcomes
            if outcome.reason is not None
        ],
    )


def _on_train(recipe: Recipe, runs: Sequence[Path]) -> dict[str, float]:
    """The main metric of each task on training rows, of the runs that have it."""
    files = [run / TRAIN_FILE for run in runs]
    scores = [read_json_object(file) for file in files if file.is_file()]
    found: dict[str, float] = {}
    for task in (task for task in TASKS if scores and task in scores[0]):
        mode, metric = best_mode(recipe.tasks[task]), recipe.tasks[task].chosen_metric
        found[task] = fmean(score[task][mode][metric] or 0.0 for score in scores)
    return found


def _commit(summary: Mapping[str, Any]) -> str:
    return str(summary.get("made_with", {}).get("commit", "unknown"))


def older_rows(out: Path) -> list[ExperimentRow]:
    """Rows of runs that were trained before their recipe was corrected; each says what differs."""
    folder = out / OLDER
    outcomes = with_earlier([], folder)
    recipes = {
        outcome.experiment.name: Recipe.load(outcome.experiment.folder(folder) / "recipe.toml")
        for outcome in outcomes
    }
    return [
        replace(row, remarks=[*row.remarks, _older_remark(row.name, recipes[row.name])])
        for row in build_rows(outcomes, folder)
    ]


def _older_remark(name: str, recipe: Recipe) -> str:
    changes = reading_changes(name, recipe)
    more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return f"older recipe: {', '.join(changes[:_SHOWN])}{more}"


def _remarks(recipe: Recipe) -> list[str]:
    layouts = (recipe.tasks[task].data.layout for task in TASKS if task in recipe.tasks)
    return [_OTHER_DATA[layout] for layout in layouts if layout in _OTHER_DATA]


def _measure(recipe: Recipe, task: str, summaries: Sequence[Mapping[str, Any]]) -> Measured:
    spec = recipe.tasks[task]
    mode = best_mode(spec)
    metric = spec.chosen_metric
    # An undefined metric counts as 0: a model that predicts a constant knows nothing.
    values = [summary["dev"][task][mode][metric] or 0.0 for summary in summaries]
    correlation = metric in ("pearson", "spearman")
    if len(values) > 1:
        interval: tuple[float, float] | None = over_seeds(values, correlation=correlation)
    else:
        rows = summaries[0]["rows"][task]
        interval = over_rows(values[0], rows, correlation=correlation)
    return Measured(metric, values, fmean(values), interval)


def over_seeds(values: Sequence[float], *, correlation: bool) -> tuple[float, float]:
    """The 95 % interval of the mean, by Student's t, within the bounds of the metric."""
    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    least = -1.0 if correlation else 0.0
    return max(least, fmean(values) - half), min(1.0, fmean(values) + half)


def over_rows(value: float, rows: int, *, correlation: bool) -> tuple[float, float] | None:
    """The 95 % interval of a share (Wilson) or a correlation (Fisher) over that many rows."""
    if correlation:
        if rows < 4 or abs(value) >= 1.0:
            return None
        middle, half = math.atanh(value), _NORMAL / math.sqrt(rows - 3)
        return math.tanh(middle - half), math.tanh(middle + half)
    square = _NORMAL**2 / rows
    middle = (value + square / 2) / (1 + square)
    half = _NORMAL / (1 + square) * math.sqrt(value * (1 - value) / rows + square / (4 * rows))
    return middle - half, middle + half


def write_table(rows: Sequence[ExperimentRow], out: Path, *, facts: Mapping[str, str]) -> None:
    """Write table.md and table.json; `facts` say how the results were made."""
    older = older_rows(out)
    content = {"facts": dict(facts), "rows": [asdict(row) for row in rows]}
    content |= {"older": [asdict(row) for row in older]} if older else {}
    write_json(out / "table.json", content)
    write_text(out / "table.md", to_markdown(rows, facts=facts, older=older))


def to_markdown(
    rows: Sequence[ExperimentRow],
    *,
    facts: Mapping[str, str],
    older: Sequence[ExperimentRow] = (),
) -> str:
    """The page of a table; `older`: rows of runs whose recipe has been corrected since."""
    lines = ["# Published against measured, on dev", ""]
    lines += [f"- {name}: {fact}" for name, fact in facts.items()]
    lines += ["", *_on_dev(rows)]
    if older:
        lines += ["", "## Trained before their recipe was corrected", ""]
        lines += ["Not comparable with the published scores beside which they stood:", ""]
        lines += _on_dev([replace(row, published={}) for row in older])
    lines += _elsewhere(rows)
    return "\n".join(lines) + "\n"


def _on_dev(rows: Sequence[ExperimentRow]) -> list[str]:
    heads = ["recipe", *(f"{name} {kind}" for name in TASKS.values() for kind in ("pub.", "ours"))]
    heads += ["mean pub.", "mean ours", "seeds", "kept", "commit", "note"]
    return markdown_table(heads, map(_cells, rows))


def _elsewhere(rows: Sequence[ExperimentRow]) -> list[str]:
    """Tables of what the reports give on training and test rows."""
    lines: list[str] = []
    if trained := [row for row in rows if row.published_train or row.measured_train]:
        lines += ["", "## On training rows", ""]
        heads = [f"{name} {kind}" for name in TASKS.values() for kind in ("pub.", "ours")]
        lines += markdown_table(["recipe", *heads], map(_train_cells, trained))
    if tested := [row for row in rows if row.published_test]:
        lines += ["", "## Published on test rows", ""]
        lines += ["The labels of these rows are not public, so there is nothing of ours.", ""]
        cells = ([row.name, *_by_task(row.published_test)] for row in tested)
        lines += markdown_table(["recipe", *TASKS.values()], cells)
    return lines


def _train_cells(row: ExperimentRow) -> list[str]:
    both = zip(_by_task(row.published_train), _by_task(row.measured_train), strict=True)
    return [row.name, *(cell for pair in both for cell in pair)]


def _by_task(scores: Mapping[str, float]) -> list[str]:
    return [_number(scores.get(task)) for task in TASKS]


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(cells) + " |" for cells in rows),
    ]


def _cells(row: ExperimentRow) -> list[str]:
    cells = [row.name]
    for task in TASKS:
        cells += [_number(row.published.get(task)), _with_interval(row.measured.get(task))]
    means = {task: measured.mean for task, measured in row.measured.items()}
    cells += [_number(_overall(row.published)), _number(_overall(means))]
    seeds = max((len(measured.values) for measured in row.measured.values()), default=0)
    note = "; ".join([*row.remarks, *row.failures]).replace("|", "\\|")
    return [*cells, str(seeds), row.kept, ", ".join(row.commits), note]


def _overall(figures: Mapping[str, float]) -> float | None:
    """The mean of all three tasks; None if one is missing."""
    return fmean(figures[task] for task in TASKS) if TASKS.keys() <= figures.keys() else None


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _with_interval(measured: Measured | None) -> str:
    if measured is None:
        return ""
    if measured.interval is None:
        return f"{measured.mean:.3f}"
    low, high = measured.interval
    return f"{measured.mean:.3f} [{low:.3f}, {high:.3f}]"
