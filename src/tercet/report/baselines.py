"""Simple baselines of a run, beside the model's scores."""

from __future__ import annotations

from collections.abc import Iterable

from tercet.evaluation import presentation as show
from tercet.evaluation.answers import Answers
from tercet.evaluation.simple_scores import Baselines, SimpleScores


def baselines_table(baselines: Baselines, answers: Iterable[Answers]) -> show.Table:
    """The model's score beside those of the baselines, of every task that has them."""
    rows = []
    for each in answers:
        baseline = baselines.get(each.task)
        if baseline is None or baseline.metric not in each.metrics:
            continue
        score = each.metrics[baseline.metric].value
        rows.append(
            [
                show.Cell(each.task),
                show.Cell(baseline.metric),
                show.number(score),
                _measured(baseline.majority),
                _measured(baseline.linear),
                _difference(score, baseline.best),
                show.Cell(_how(baseline)),
            ]
        )
    return show.Table(
        caption="This model beside the majority class and a linear model on the untouched encoder; "
        "the difference is from the better of the two",
        columns=[
            "Task", "Metric", "This model", "Majority class", "Linear model", "Difference",
            "Baselines measured on",
        ],
        rows=rows,
    )  # fmt: skip


def _measured(value: float | None) -> show.Cell:
    return show.Cell("") if value is None else show.number(value)


def _difference(score: float | None, best: float | None) -> show.Cell:
    if score is None or best is None:
        return show.Cell("")
    value = score - best
    return show.Cell(f"{value:+.3f}", value)


def _how(baseline: SimpleScores) -> str:
    rows = [] if baseline.rows is None else [f"{baseline.rows:,} rows"]
    return ", ".join([*rows, *([baseline.method] if baseline.method else [])])
