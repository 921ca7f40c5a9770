"""The tables that set models side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tercet.evaluate.answers import Document
from tercet.evaluate.compare import Comparison, Contest, Difference, Disagreement
from tercet.evaluate.suite_tables import TITLES, sets_without_leaks
from tercet.evaluate.tables import Cell, Table, count, figure, number, span, taking_turns


def comparison_tables(
    comparison: Comparison, documents: Sequence[Document]
) -> dict[str, list[Table]]:
    """All tables under their titles; empty ones are left out."""
    tables = {
        "Figures": [contests_table(comparison), side_by_side_table(documents, comparison.names)],
        "Beyond chance": [differences_table(comparison)],
        "Where they differ": [disagreements_table(comparison)],
    }
    filled = {title: [one for one in every if one.rows] for title, every in tables.items()}
    return {title: every for title, every in filled.items() if every}


def contests_table(comparison: Comparison) -> Table:
    """All models' figures on their tasks."""
    rows = [
        [
            Cell(one.task),
            Cell(_named(one)),
            *(
                Cell("no such task") if mode is None else number(value)
                for mode, value in zip(one.modes, one.values, strict=True)
            ),
            count(one.rows),
        ]
        for one in comparison.contests
    ]
    return Table(
        caption="Figures side by side, of each model's most exact mode; * stands for its task",
        columns=["Task", "Metric", *comparison.names, "Rows"],
        rows=rows,
        numeric=frozenset({*comparison.names, "Rows"}),
    )


def differences_table(comparison: Comparison) -> Table:
    """How far each later model is from the first."""
    rows = []
    for place, name in enumerate(comparison.names[1:]):
        for one in comparison.contests:
            if (found := one.differences[place]) is not None:
                cells = [Cell(name), Cell(one.task), Cell(_named(one))]
                rows.append([*cells, *_difference_cells(found)])
    return Table(
        caption=f"Each model against {comparison.names[0]}, by a paired bootstrap of the same rows",
        columns=["Model", "Task", "Metric", "Difference", "95 % interval", "p", "Verdict"],
        rows=rows,
        numeric=frozenset({"Difference", "p"}),
    )


def _named(one: Contest) -> str:
    return f"{one.metric} *" if one.chosen else one.metric


def _difference_cells(one: Difference) -> list[Cell]:
    if one.value is None or one.interval is None or one.p is None:
        return [Cell("undefined"), Cell(""), Cell(""), Cell("")]
    low, high = one.interval
    verdict = "better" if low > 0.0 else "worse" if high < 0.0 else "no clear difference"
    p = Cell("below 0.002" if one.p < 0.002 else figure(one.p), one.p)
    return [Cell(f"{one.value:+.3f}", one.value), Cell(span(one.interval)), p, Cell(verdict)]


def disagreements_table(comparison: Comparison) -> Table:
    """The models that say something of these sentences, those of all tasks furthest apart first."""
    ranked: dict[str, list[Disagreement]] = {}
    for one in comparison.disagreements:
        ranked.setdefault(one.task, []).append(one)
    found = taking_turns(ranked.values())
    models = [
        (place, name)
        for place, name in enumerate(comparison.names)
        if any(one.said[place] for one in found)
    ]
    names = [name for _, name in models]
    rows = []
    for one in found:
        said = [
            Cell(one.said[place], mark="right" if one.right[place] else "wrong")
            if one.said[place]
            else Cell("")
            for place, _ in models
        ]
        apart = Cell(f"{one.apart:.2f}", one.apart)
        rows.append([Cell("\n".join(one.inputs)), Cell(one.task), Cell(one.expected), *said, apart])
    return Table(
        caption="Sentences on which the models differ, those of each task that are furthest apart "
        "first: in the probability of the right class, or in the grade",
        columns=["Sentence", "Task", "Expected", *names, "Apart"],
        rows=rows,
        numeric=frozenset({"Apart"}),
        filters=["Task", "Expected", *names],
    )


def side_by_side_table(documents: Sequence[Document], names: Sequence[str]) -> Table:
    """The figures of the suites beyond `tasks`, of all models."""
    found = [dict(_figures(document["suites"])) for document in documents]
    keys = dict.fromkeys(key for figures in found for key in figures)
    rows = [
        [
            Cell(suite),
            Cell(what),
            *(
                number(figures[suite, what]) if (suite, what) in figures else Cell("")
                for figures in found
            ),
        ]
        for suite, what in keys
    ]
    return Table(
        caption="Figures of the other suites, side by side",
        columns=["Suite", "What", *names],
        rows=rows,
        numeric=frozenset(names),
    )


def _figures(suites: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float | None]]:
    """((suite, what), figure)"""
    if sts := suites.get("sts"):
        for what, value in _sts_figures(sts):
            yield (TITLES["sts"], what), value
    if transfer := suites.get("transfer"):
        for task, block in transfer["tasks"].items():
            for metric, one in block["metrics"].items():
                yield (TITLES["transfer"], f"{task}, {metric}"), one["value"]
        yield (TITLES["transfer"], "average"), transfer["average"]
    if robustness := suites.get("robustness"):
        for name, tasks in robustness["word_order"].items():
            for task, modes in tasks.items():
                for mode, one in modes.items():
                    what = f"{name}, {task}, mode {mode}: share fooled"
                    yield (TITLES["robustness"], what), one["fooled"]
    if geometry := suites.get("geometry"):
        for what in ("alignment", "uniformity", "anisotropy"):
            yield (TITLES["geometry"], what), geometry[what]


def _sts_figures(suite: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for name, one in suite["sets"].items():
        yield f"{name}, spearman", one["spearman"]["value"]
    yield "average", suite["average"]
    if suite["without_leaked_pairs"]:
        for name, one in sets_without_leaks(suite):
            yield f"{name}, spearman", one["spearman"]["value"]
        yield "average without leaked pairs", suite["average_without_leaked_pairs"]
