"""An evaluation as plain tables, one or more a suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tercet.evaluate.evaluation import Evaluation
from tercet.evaluate.geometry import GeometryResult
from tercet.evaluate.results import Figure, TasksResult
from tercet.evaluate.robustness import RobustnessResult
from tercet.evaluate.sts import SetResult, StsResult
from tercet.evaluate.transfer import TransfersResult

Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    title: str
    columns: Cells
    rows: list[Cells]


def summaries(evaluation: Evaluation) -> list[Summary]:
    """The figures of every suite that was run, in their order."""
    shown: list[Summary] = []
    columns: Cells
    for result in evaluation.suites.values():
        if isinstance(result, TasksResult):
            columns = ("task", "mode", "rows", "metric", "figure", "95 % interval")
            shown.append(Summary("tasks", columns, list(_tasks(result))))
        elif isinstance(result, StsResult):
            columns = ("set", "pairs", "spearman*", "95 % interval", "pearson")
            shown.append(Summary("sts", columns, list(_sts(result))))
        elif isinstance(result, TransfersResult):
            columns = ("task", "rows", "metric", "figure", "95 % interval")
            shown.append(Summary("transfer", columns, list(_transfer(result))))
        elif isinstance(result, RobustnessResult):
            columns = ("set", "task", "mode", "accuracy", "fooled", "fooled at high overlap")
            shown.append(Summary("robustness: word order", columns, list(_order(result))))
            columns = ("change", "meaning", "task", "mode", "rows", "metric", "before", "after")
            columns = (*columns, "predictions moved")
            shown.append(Summary("robustness: changes by rule", columns, list(_changes(result))))
        elif isinstance(result, GeometryResult):
            shown.append(Summary("geometry", ("figure", "value"), list(_geometry(result))))
    return shown


def _value(figure: float | None) -> str:
    return "undefined" if figure is None else f"{figure:.4f}"


def _bounds(figure: Figure) -> str:
    if figure.interval is None:
        return ""
    low, high = figure.interval
    return f"{low:.4f} to {high:.4f}"


def _tasks(result: TasksResult) -> Iterator[Cells]:
    for name, task in result.tasks.items():
        for mode, found in task.modes.items():
            for metric, figure in found.metrics.items():
                marked = f"{metric}*" if metric == task.metric else metric
                yield name, mode, str(task.rows), marked, _value(figure.value), _bounds(figure)
            if found.calibration is not None:
                yield name, mode, str(task.rows), "ece", _value(found.calibration.ece), ""
    for mean, score in result.overall.items():
        yield "overall", "", "", mean, _value(score), ""


def _sts(result: StsResult) -> Iterator[Cells]:
    for name, found in result.sets.items():
        yield _sts_row(name, found)
    yield "average", "", _value(result.average), "", ""
    if result.unleaked is not None:
        for name, found in result.unleaked.items():
            if found is not result.sets[name]:
                yield _sts_row(f"{name} without leaked pairs", found)
        yield "average without leaked pairs", "", _value(result.average_unleaked), "", ""


def _sts_row(name: str, found: SetResult) -> Cells:
    figure, pearson = found.spearman, found.pearson.value
    pairs = str(len(found.grades))
    return name, pairs, _value(figure.value), _bounds(figure), _value(pearson)


def _transfer(result: TransfersResult) -> Iterator[Cells]:
    for name, task in result.tasks.items():
        for metric, figure in task.metrics.items():
            yield name, str(task.rows), metric, _value(figure.value), _bounds(figure)
    yield "average", "", "accuracy", _value(result.average), ""


def _order(result: RobustnessResult) -> Iterator[Cells]:
    for name, tasks in result.word_order.items():
        for task, modes in tasks.items():
            for mode, found in modes.items():
                high = _value(found.fooled_high_overlap)
                yield name, task, mode, _value(found.accuracy.value), _value(found.fooled), high
                for kind, share in found.heuristics.items():
                    yield f"{name} {kind}", task, mode, "", _value(share), ""


def _changes(result: RobustnessResult) -> Iterator[Cells]:
    for task, modes in result.changes.items():
        for mode, rules in modes.items():
            for rule, found in rules.items():
                meaning = "stays" if found.keeps else "changes"
                figures = [_value(one) for one in (found.before, found.after, found.moved)]
                yield rule, meaning, task, mode, str(found.rows), found.metric, *figures


def _geometry(result: GeometryResult) -> Iterator[Cells]:
    yield "alignment", _value(result.alignment)
    yield "uniformity", _value(result.uniformity)
    yield "anisotropy", _value(result.anisotropy)
    if result.spectrum is not None:
        yield "effective rank", _value(result.spectrum.effective_rank)
