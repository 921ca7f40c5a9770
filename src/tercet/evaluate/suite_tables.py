"""The tables of the suites beyond the model's own tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tercet.data.columns import shorten
from tercet.evaluate.answers import SHOWN, Document, tasks_of
from tercet.evaluate.tables import Cell, Table, count, figure_cells, number

INTERVAL = "95 % interval"
TITLES = {
    "sts": "Semantic textual similarity",
    "transfer": "Transfer",
    "robustness": "Robustness",
    "geometry": "Geometry",
}
"""Of the suites beyond `tasks`."""


def sts_table(suite: Mapping[str, Any]) -> Table:
    """Spearman and Pearson of every set, and the averages."""
    rows = [[Cell(name), *_set_cells(one)] for name, one in suite["sets"].items()]
    rest = [Cell("")] * 4
    if one := suite["without_leaked_pairs"]:
        rows.append([Cell("STS-B without leaked pairs"), *_set_cells(one)])
    rows.append([Cell("Average of seven"), number(suite["average"]), *rest])
    if one:
        average = number(suite["average_without_leaked_pairs"])
        rows.append([Cell("Average without leaked pairs"), average, *rest])
    return Table(
        caption="How cosines of vectors follow people's grades; the average is Spearman's",
        columns=["Set", "Spearman", INTERVAL, "Pearson", f"{INTERVAL} of Pearson", "Pairs"],
        rows=rows,
        numeric=frozenset({"Spearman", "Pearson", "Pairs"}),
    )


def _set_cells(one: Mapping[str, Any]) -> list[Cell]:
    return [*figure_cells(one["spearman"]), *figure_cells(one["pearson"]), count(one["pairs"])]


def transfer_table(suite: Mapping[str, Any]) -> Table:
    """Every metric of every transfer task, and the average accuracy."""
    rows = [
        [Cell(task), Cell(metric), *figure_cells(one), count(block["rows"])]
        for task, block in suite["tasks"].items()
        for metric, one in block["metrics"].items()
    ]
    mean = [Cell("Average"), Cell("accuracy"), number(suite["average"]), Cell(""), Cell("")]
    return Table(
        caption="A logistic regression on vectors that stay as they are, by SentEval's protocol",
        columns=["Task", "Metric", "Figure", INTERVAL, "Rows"],
        rows=[*rows, mean],
        numeric=frozenset({"Figure", "Rows"}),
    )


def word_order_table(suite: Mapping[str, Any]) -> Table:
    """How often word order fools each head."""
    rows = []
    for name, tasks in suite["word_order"].items():
        for task, gears in tasks.items():
            for gear, one in gears.items():
                cells = [Cell(name), Cell(task), Cell(gear), *figure_cells(one["accuracy"])]
                cells += [number(one["fooled"]), number(one["fooled_high_overlap"])]
                rows.append([*cells, count(one["pairs"])])
    return Table(
        caption="Pairs of like words: how often a different meaning is taken for the same",
        columns=["Set", "Task", "Gear", "Accuracy", INTERVAL, "Fooled", "Much overlap", "Pairs"],
        rows=rows,
        numeric=frozenset({"Accuracy", "Fooled", "Much overlap", "Pairs"}),
    )


def heuristics_table(suite: Mapping[str, Any]) -> Table:
    """The share of pairs by which each heuristic of a set fools a head."""
    rows = [
        [Cell(heuristic.replace("_", " ")), Cell(name), Cell(task), Cell(gear), number(fooled)]
        for name, tasks in suite["word_order"].items()
        for task, gears in tasks.items()
        for gear, one in gears.items()
        for heuristic, fooled in one["heuristics"].items()
    ]
    return Table(
        caption="Which heuristics fool it, as a share of the pairs of different meaning",
        columns=["Heuristic", "Set", "Task", "Gear", "Fooled"],
        rows=rows,
        numeric=frozenset({"Fooled"}),
    )


def changes_table(suite: Mapping[str, Any]) -> Table:
    """A task's figure before and after each rule changed its sentences."""
    rows = []
    for task, gear, rule, one in _changes(suite):
        figures = [number(one["before"]), number(one["after"]), number(one["moved"])]
        keeps = Cell("stay" if one["keeps_meaning"] else "move")
        rows.append(
            [Cell(rule), Cell(task), Cell(one["metric"]), *figures, keeps, Cell(gear)]
            + [count(one["rows"])]
        )
    return Table(
        caption="Sentences changed by rule: the figure before and after, and the share of "
        "predictions that moved",
        columns=["Rule", "Task", "Metric", "Before", "After", "Moved", "Should", "Gear", "Rows"],
        rows=rows,
        numeric=frozenset({"Before", "After", "Moved", "Rows"}),
    )


def change_examples_table(suite: Mapping[str, Any], classes: Mapping[str, Any]) -> Table:
    """The sentences whose predictions moved most."""
    rows = []
    for task, gear, rule, one in _changes(suite):
        for example in one["examples"]:
            said = [
                Cell(_said(example[key], classes.get(task)))
                for key in ("predicted", "predicted_after")
            ]
            texts = [_shown(example[key]) for key in ("texts", "changed")]
            rows.append([*texts, Cell(rule), Cell(task), *said, Cell(gear)])
    return Table(
        caption="Changed sentences whose predictions moved most",
        columns=["Sentence", "Changed to", "Rule", "Task", "Before", "After", "Gear"],
        rows=rows,
        filters=["Rule", "Task"],
    )


def _shown(texts: Sequence[str]) -> Cell:
    return Cell("\n".join(shorten(text, SHOWN) for text in texts))


def _changes(suite: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    for task, gears in suite["changes"].items():
        for gear, rules in gears.items():
            for rule, one in rules.items():
                yield task, gear, rule, one


def _said(value: float, classes: list[str] | None) -> str:
    return f"{value:.2f}" if classes is None else classes[int(value)]


def geometry_table(suite: Mapping[str, Any]) -> Table:
    """The figures of how vectors lie, each with what it means."""
    spectrum = suite["spectrum"] or {"effective_rank": None}
    meanings = [
        ("Alignment", suite["alignment"], "mean squared distance of pairs that mean the same"),
        ("Uniformity", suite["uniformity"], "how evenly sentences fill the sphere; less is more"),
        ("Anisotropy", suite["anisotropy"], "mean cosine of any two sentences"),
        ("Effective rank", spectrum["effective_rank"], "how many directions are really used"),
    ]
    return Table(
        caption=f"How the vectors of {suite['sentences']:,} sentences lie",
        columns=["What", "Figure", "Meaning"],
        rows=[[Cell(name), number(value), Cell(meaning)] for name, value, meaning in meanings],
        numeric=frozenset({"Figure"}),
    )


def suite_tables(document: Document) -> dict[str, list[Table]]:
    """The tables of the suites that were run, under their titles, without empty ones."""
    classes = {task: block["classes"] for task, block in tasks_of(document).items()}
    found: dict[str, list[Table]] = {}
    for name, suite in document["suites"].items():
        if name in TITLES:
            found[TITLES[name]] = [table for table in _tables(name, suite, classes) if table.rows]
    return found


def _tables(name: str, suite: Mapping[str, Any], classes: Mapping[str, Any]) -> list[Table]:
    if name == "sts":
        return [sts_table(suite)] if suite["sets"] else []
    if name == "transfer":
        return [transfer_table(suite)] if suite["tasks"] else []
    if name == "geometry":
        return [geometry_table(suite)] if suite["sentences"] else []
    order = [word_order_table(suite), heuristics_table(suite)]
    return [*order, changes_table(suite), change_examples_table(suite, classes)]
