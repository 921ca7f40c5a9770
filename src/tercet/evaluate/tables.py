"""The tables of an evaluation, as the report and the Markdown both show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

from tercet.evaluate.answers import Answers, Document, Texts, answers_of, tasks_of
from tercet.evaluate.details import mistakes
from tercet.evaluate.run_history import RunHistory

T = TypeVar("T")
MISTAKES = 40
"""A task."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and the number by which it sorts where the text itself would not do.

    mark: `right` or `wrong`, where a prediction is either
    """

    text: str
    sort: float | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns; the first column names the row.

    numeric: the columns that hold numbers
    filters: the columns to choose rows by
    """

    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    numeric: frozenset[str] = frozenset()
    filters: list[str] = field(default_factory=list)

    def values(self, column: str) -> list[str]:
        """The different texts of a column, in order of appearance."""
        place = self.columns.index(column)
        return list(dict.fromkeys(row[place].text for row in self.rows))


def figure(value: float | None, digits: int = 3) -> str:
    """A figure as people read it; what has no value is said to be undefined."""
    return "undefined" if value is None else f"{value:.{digits}f}"


def span(bounds: Sequence[float] | None, digits: int = 3) -> str:
    return "" if bounds is None else f"{bounds[0]:.{digits}f} to {bounds[1]:.{digits}f}"


def listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def number(value: float | None, digits: int = 3) -> Cell:
    return Cell(figure(value, digits), value)


def share(value: float | None) -> Cell:
    return Cell("undefined" if value is None else f"{value:.0%}", value)


def taking_turns(groups: Iterable[Iterable[T]]) -> list[T]:
    """The first of every group, then the second of every group, and so on."""
    return [one for rank in zip_longest(*groups) for one in rank if one is not None]


def figure_cells(one: Mapping[str, Any]) -> list[Cell]:
    """A figure of the document and its interval."""
    return [number(one["value"]), Cell(span(one["interval"]))]


def count(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def tasks_table(document: Document) -> Table:
    """Every metric of every mode, with its interval."""
    rows = []
    for task, block in tasks_of(document).items():
        for mode, found in block["modes"].items():
            for metric, one in found["metrics"].items():
                named = f"{metric} *" if metric == block["metric"] else metric
                cells = [Cell(task), Cell(named), *figure_cells(one)]
                rows.append([*cells, Cell(mode), count(block["rows"])])
    return Table(
        caption="Every metric of every mode; * marks the one that stands for its task",
        columns=["Task", "Metric", "Figure", "95 % interval", "Mode", "Rows"],
        rows=rows,
        numeric=frozenset({"Rows", "Figure"}),
    )


def calibration_table(document: Document) -> Table:
    numeric = ["Calibration error", "Negative log-likelihood", "Temperature", "Shift"]
    rows = []
    for task, block in tasks_of(document).items():
        for mode, found in block["modes"].items():
            if one := found.get("calibration"):
                cells = [number(one.get(key)) for key in ("ece", "nll", "temperature", "shift")]
                rows.append([Cell(task), Cell(mode), *cells])
    return Table(
        caption="How far the probabilities can be trusted: of both errors less is better, and the "
        "head's outputs are divided by the temperature; of two classes, the shift is added then",
        columns=["Task", "Mode", *numeric],
        rows=rows,
        numeric=frozenset(numeric),
    )


def mistakes_table(document: Document, texts: Texts) -> Table:
    """The most confident mistakes of each task's most exact mode, the worst first."""
    tasks = [_mistakes(answers_of(document, texts, task)[0]) for task in tasks_of(document)]
    return Table(
        caption="The worst mistakes of each task",
        columns=["Sentence", "Task", "Expected", "Predicted", "How wrong"],
        rows=taking_turns(tasks),
        numeric=frozenset({"How wrong"}),
        filters=["Task", "Expected", "Predicted"],
    )


def _mistakes(answers: Answers) -> list[list[Cell]]:
    graded = answers.classes is None
    return [
        [
            Cell("\n".join(answers.inputs(one.row))),
            Cell(answers.task),
            Cell(answers.name(one.expected)),
            Cell(answers.name(one.predicted)),
            Cell(f"off by {one.weight:.1f}" if graded else f"{one.weight:.0%} sure", one.weight),
        ]
        for one in mistakes(answers.labels, answers.predictions, graded=graded, top=MISTAKES)
    ]


def forgetting_table(run: RunHistory) -> Table:
    """Each task's figure after each stage, and how far below its best until then."""
    rows = []
    for moment in run.forgetting:
        cells = [
            Cell(_remembered(one.value, one.forgotten), one.value) for one in moment.tasks.values()
        ]
        rows.append([Cell(f"{moment.stage}, step {moment.step:,}", moment.step), *cells])
    names = [f"{task} ({metric})" for task, metric in run.metrics.items()]
    return Table(
        caption="What was kept and forgotten: figures on dev, and their distance from their best",
        columns=["After", *names],
        rows=rows,
        numeric=frozenset(names),
    )


def _remembered(value: float | None, forgotten: float | None) -> str:
    return figure(value) + (f" (−{forgotten:.3f})" if forgotten else "")


def facts(document: Document) -> dict[str, str]:
    """What an evaluation was made of, by name."""
    model, machine = document["model"], document["machine"]
    found: Mapping[str, Any] = {
        "Model": model["name"],
        "Encoder": model["encoder"],
        "Recipe": model.get("recipe"),
        "Width": model["width"],
        "Data folder": document["data"],
        "Machine": ", ".join(f"{key} {value}" for key, value in machine.items() if value),
        "Versions": ", ".join(f"{key} {value}" for key, value in document["versions"].items()),
        "Time": f"{document['seconds']:,.0f} seconds",
    }
    return {name: str(value) for name, value in found.items() if value is not None}
