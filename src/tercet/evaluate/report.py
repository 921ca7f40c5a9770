"""The report: one HTML file that opens offline and asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tercet.evaluate.answers import Answers, Document, Texts, answers_of, tasks_of
from tercet.evaluate.charts import (
    length_chart,
    precision_recall_chart,
    reliability_chart,
    run_charts,
    scatter,
    suite_figures,
)
from tercet.evaluate.compare import compare
from tercet.evaluate.comparison_tables import comparison_tables
from tercet.evaluate.details import confusion, shares
from tercet.evaluate.figures import Chart, SentenceMap
from tercet.evaluate.findings import findings, sts_average
from tercet.evaluate.run_history import RunHistory
from tercet.evaluate.suite_tables import INTROS, TITLES, suite_tables
from tercet.evaluate.tables import (
    Table,
    calibration_table,
    facts,
    figure,
    forgetting_table,
    listed,
    mistakes_table,
    span,
    tasks_table,
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A confusion matrix, raw and normalised: [expected][predicted] of (count, share)."""

    caption: str
    classes: Sequence[str]
    cells: list[list[tuple[int, float | None]]]


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure that stands for a task or a suite, as a card; bounds in per cent of its bar."""

    task: str
    what: str
    value: str
    span: str
    place: float | None
    bounds: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report under a heading of its own.

    points: sentences, by what they are about
    tables_first: whether figures come after the tables
    """

    title: str
    intro: str = ""
    points: Mapping[str, str] = field(default_factory=dict)
    matrices: Sequence[Matrix] = ()
    figures: Sequence[Chart | SentenceMap] = ()
    tables: Sequence[Table] = ()
    parts: Sequence[Section] = ()
    tables_first: bool = False

    @property
    def anchor(self) -> str:
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    lead: str
    facts: Sequence[dict[str, str]]
    headlines: Sequence[Headline]
    sections: Sequence[Section]
    missing: Sequence[dict[str, str]] = field(default_factory=list)


def render_report(
    document: Document,
    texts: Texts,
    *,
    mapped: Sequence[str] = (),
    run: RunHistory | None = None,
) -> str:
    """The page of one evaluation.

    mapped: the sentences of the map of the suite `geometry`
    run: how the run went that made the model
    """
    sections = [_at_a_glance(document), _summary(document), *_task_sections(document, texts)]
    sections += _suite_sections(document, mapped)
    if run is not None:
        sections.append(_training(run))
    page = Page(
        title=f"Evaluation of {document['model']['name']}",
        lead=_lead(document),
        facts=[facts(document)],
        headlines=list(_headlines(document)),
        sections=[section for section in sections if section is not None],
        missing=document["missing"],
    )
    return _render(page)


def render_comparison(documents: Sequence[Document], texts: Sequence[Texts]) -> str:
    """The page that sets models side by side."""
    found = compare(documents, texts)
    missing = {str(one): one for document in documents for one in document["missing"]}
    page = Page(
        title=f"Comparison of {listed(found.names)}",
        lead=(
            "Models side by side on the same rows. A difference counts as beyond chance where its "
            "interval leaves out 0."
        ),
        facts=[facts(document) for document in documents],
        headlines=[],
        sections=[
            Section(title, tables=tables)
            for title, tables in comparison_tables(found, documents).items()
        ],
        missing=list(missing.values()),
    )
    return _render(page)


def _lead(document: Document) -> str:
    mean = document["suites"].get("tasks", {}).get("overall", {}).get("mean")
    if mean is None:
        return "What this model can and cannot do."
    return f"What this model can and cannot do. Over its tasks it reaches {mean:.3f} on average."


def _headlines(document: Document) -> Iterable[Headline]:
    for task, block in tasks_of(document).items():
        mode, found = next(iter(block["modes"].items()))
        one = found["metrics"][block["metric"]]
        yield Headline(
            task=task,
            what=f"{block['metric']}, mode {mode}",
            value=figure(one["value"]),
            span=span(one["interval"]),
            place=None if one["value"] is None else _per_cent(one["value"]),
            bounds=None if one["interval"] is None else _bounds(one["interval"]),
        )
    yield from _suite_headlines(document["suites"])


def _suite_headlines(suites: Mapping[str, Any]) -> Iterable[Headline]:
    if (sts := suites.get("sts")) and (value := sts_average(sts)) is not None:
        what = "Spearman, average of seven STS sets"
        told = f"{what}, without leaked pairs" if sts["without_leaked_pairs"] else what
        yield Headline("Nearness", told, figure(value), "", _per_cent(value), None)
    if (transfer := suites.get("transfer")) and (value := transfer["average"]) is not None:
        what = "accuracy, average of SentEval's seven"
        yield Headline("Other tasks", what, figure(value), "", _per_cent(value), None)


def _bounds(interval: Sequence[float]) -> tuple[float, float]:
    return _per_cent(interval[0]), _per_cent(interval[1])


def _per_cent(value: float) -> float:
    return round(100.0 * min(1.0, max(0.0, value)), 1)


def _summary(document: Document) -> Section | None:
    if not tasks_of(document):
        return None
    tables = [tasks_table(document), calibration_table(document)]
    return Section("Summary", tables=[table for table in tables if table.rows])


def _at_a_glance(document: Document) -> Section | None:
    points = findings(document)
    return Section("At a glance", points=points) if points else None


def _task_sections(document: Document, texts: Texts) -> Iterable[Section]:
    blocks = tasks_of(document)
    if not blocks:
        return
    yield Section("Tasks", parts=[_task(document, texts, task) for task in blocks])
    if all(task in texts for task in blocks):
        intro = (
            "The rows that each task's most exact mode was surest of and got wrong, or whose grade "
            "is furthest off. Labels are people's, and some of them are mistakes too."
        )
        yield Section("Mistakes", intro=intro, tables=[mistakes_table(document, texts)])


def _task(document: Document, texts: Texts, task: str) -> Section:
    block = tasks_of(document)[task]
    every = answers_of(document, texts, task)
    calibrations = {
        mode: found["calibration"]
        for mode, found in block["modes"].items()
        if found.get("calibration")
    }
    figures = [scatter(one) for one in every if one.classes is None]
    figures += [precision_recall_chart(every)] if every[0].positive is not None else []
    figures += [reliability_chart(task, calibrations)] if calibrations else []
    figures += [length_chart(every)] if every[0].texts and block["rows"] else []
    return Section(
        title=task,
        intro=_task_intro(block),
        matrices=[_matrix(one) for one in every if one.classes is not None],
        figures=figures,
    )


def _task_intro(block: Any) -> str:
    skipped = len(block["skipped"])
    told = f"; {skipped:,} more could not be used" if skipped else ""
    return f"{block['rows']:,} rows of {', '.join(block['files'])}{told}."


def _matrix(answers: Answers) -> Matrix:
    assert answers.classes is not None
    counts = confusion(answers.labels, answers.said, classes=len(answers.classes))
    cells = [
        list(zip(map(int, row), parts, strict=True))
        for row, parts in zip(counts, shares(counts), strict=True)
    ]
    return Matrix(f"Mode {answers.mode}", answers.classes, cells)


def _suite_sections(document: Document, mapped: Sequence[str]) -> list[Section]:
    drawn = suite_figures(document, mapped)
    return [
        Section(
            title,
            intro=INTROS[title],
            figures=drawn.get(title, []),
            tables=tables,
            tables_first=title != TITLES["geometry"],
        )
        for title, tables in suite_tables(document).items()
        if tables or drawn.get(title)
    ]


def _training(run: RunHistory) -> Section:
    stages = ", ".join(name for name, _ in run.stages)
    return Section(
        title="Training",
        intro=f"The run of {run.name}: {run.steps:,} steps; stages: {stages or 'none yet'}.",
        figures=run_charts(run),
        tables=[forgetting_table(run)] if run.forgetting else [],
    )


def _render(page: Page) -> str:
    environment = Environment(
        loader=PackageLoader("tercet.evaluate"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sources = environment.loader
    assert isinstance(sources, PackageLoader)
    style = sources.get_source(environment, "report.css")[0]
    script = sources.get_source(environment, "report.js")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.get_template("report.html.jinja")
    return template.render(page=page, style=style, script=script, digest=digest)
