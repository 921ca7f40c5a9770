"""The tables of the suites beyond the model's own tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tercet.data.columns import shorten
from tercet.evaluate.answers import SHOWN, Document, tasks_of
from tercet.evaluate.tables import Cell, Table, count, figure_cells, number, share, taking_turns

INTERVAL = "95 % interval"
HEURISTICS = {
    "lexical_overlap": "All words",
    "subsequence": "A run of words",
    "constituent": "A whole phrase",
}
"""What HANS's names for them mean."""
TITLES = {
    "sts": "Semantic textual similarity",
    "transfer": "Transfer",
    "robustness": "Robustness",
    "geometry": "Geometry",
}
"""Of the suites beyond `tasks`."""
INTROS = {
    TITLES["sts"]: "Pairs that people graded by how near they are in meaning. No head takes part: "
    "only the cosine of both vectors counts, and how well its order follows the grades.",
    TITLES["transfer"]: "What the vectors hold for tasks that the model was not made for: of each, "
    "a logistic regression learns from vectors that stay as they are, by SentEval's protocol. MR "
    "and SST-2 share their sentences with SST: a model trained on that has seen many of them.",
    TITLES["robustness"]: "Pairs of the same words in another order, and dev sentences changed by "
    "rule. Where a rule keeps the meaning, predictions should stay. Where it changes the meaning, "
    "a pair that meant the same no longer does, and one that did not still does not.",
    TITLES["geometry"]: "How the vectors lie in their space.",
}


def sts_table(suite: Mapping[str, Any]) -> Table:
    """Spearman and Pearson of every set, and the averages."""
    rows = [[Cell(name), *_set_cells(one)] for name, one in suite["sets"].items()]
    rest = [Cell("")] * 4
    rows.append([Cell("Average of seven"), number(suite["average"]), *rest])
    if suite["without_leaked_pairs"]:
        rows += [[Cell(name), *_set_cells(one)] for name, one in sets_without_leaks(suite)]
        average = number(suite["average_without_leaked_pairs"])
        rows.append([Cell("Average without leaked pairs"), average, *rest])
    return Table(
        caption="How cosines follow people's grades; averages are Spearman's",
        columns=["Set", "Spearman", INTERVAL, "Pearson", f"{INTERVAL} of Pearson", "Pairs"],
        rows=rows,
        numeric=frozenset({"Spearman", "Pearson", "Pairs"}),
    )


def sets_without_leaks(suite: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The sets that some pairs were left out of, as they are called then."""
    for name, one in (suite["without_leaked_pairs"] or {}).items():
        if one["pairs"] < suite["sets"][name]["pairs"]:
            yield f"{name} without leaked pairs", one


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
        caption="Every task, and the average of accuracies",
        columns=["Task", "Metric", "Figure", INTERVAL, "Rows"],
        rows=[*rows, mean],
        numeric=frozenset({"Figure", "Rows"}),
    )


def word_order_table(suite: Mapping[str, Any]) -> Table:
    """How often word order fools each head."""
    rows = []
    for name, tasks in suite["word_order"].items():
        for task, modes in tasks.items():
            for mode, one in modes.items():
                cells = [Cell(name), Cell(task), Cell(mode), *figure_cells(one["accuracy"])]
                cells += [share(one["fooled"]), share(one["fooled_high_overlap"])]
                rows.append([*cells, count(one["pairs"])])
    return Table(
        caption="Fooled: the share of pairs with different meanings that are taken for the same; "
        "most words: of those alone that share most of their words",
        columns=["Set", "Task", "Mode", "Accuracy", INTERVAL, "Fooled", "Most words", "Pairs"],
        rows=rows,
        numeric=frozenset({"Accuracy", "Fooled", "Most words", "Pairs"}),
    )


def heuristics_table(suite: Mapping[str, Any]) -> Table:
    """Of a set whose pairs are made by heuristics, the share by which each fools a head."""
    found = [
        (name, task, mode, one["heuristics"])
        for name, tasks in suite["word_order"].items()
        for task, modes in tasks.items()
        for mode, one in modes.items()
        if one["heuristics"]
    ]
    kinds = list(dict.fromkeys(kind for *_, shares in found for kind in shares))
    names = [HEURISTICS.get(kind, kind) for kind in kinds]
    return Table(
        caption="Fooled, by what the sentences of a pair share",
        columns=["Set", "Task", "Mode", *names],
        rows=[
            [Cell(name), Cell(task), Cell(mode), *(share(shares.get(kind)) for kind in kinds)]
            for name, task, mode, shares in found
        ],
        numeric=frozenset(names),
    )


def changes_table(suite: Mapping[str, Any]) -> Table:
    """A task's figure before and after each rule changed its sentences."""
    rows = []
    for task, mode, rule, one in _changes(suite):
        figures = [number(one["before"]), number(one["after"]), share(one["moved"])]
        meaning = Cell("kept" if one["keeps_meaning"] else "changed")
        rows.append(
            [Cell(rule), meaning, Cell(task), Cell(mode), Cell(one["metric"]), *figures]
            + [count(one["rows"])]
        )
    return Table(
        caption="Sentences changed by rule: the figure before and after, against the same labels, "
        "and how many predictions moved",
        columns=["Rule", "Meaning", "Task", "Mode", "Metric", "Before", "After", "Moved", "Rows"],
        rows=rows,
        numeric=frozenset({"Before", "After", "Moved", "Rows"}),
    )


def change_examples_table(suite: Mapping[str, Any], classes: Mapping[str, Any]) -> Table:
    """The sentences whose predictions moved most."""
    groups = []
    for task, mode, rule, one in _changes(suite):
        rows: list[list[Cell]] = []
        for example in one["examples"]:
            said = [
                Cell(_said(example[key], classes.get(task)))
                for key in ("predicted", "predicted_after")
            ]
            texts = [_shown(example[key]) for key in ("texts", "changed")]
            if said[0] != said[1]:
                rows.append([*texts, Cell(rule), Cell(task), *said, Cell(mode)])
        groups.append(rows)
    return Table(
        caption="Changed sentences whose predictions moved most",
        columns=["Sentence", "Changed to", "Rule", "Task", "Before", "After", "Mode"],
        rows=taking_turns(groups),
        filters=["Rule", "Task"],
    )


def _shown(texts: Sequence[str]) -> Cell:
    return Cell("\n".join(shorten(text, SHOWN) for text in texts))


def _changes(suite: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    for task, modes in suite["changes"].items():
        for mode, rules in modes.items():
            for rule, one in rules.items():
                yield task, mode, rule, one


def _said(value: float, classes: list[str] | None) -> str:
    return f"{value:.2f}" if classes is None else classes[int(value)]


def geometry_table(suite: Mapping[str, Any]) -> Table:
    """The figures of how vectors lie, each with what it means."""
    spectrum = suite["spectrum"] or {"effective_rank": None}
    meanings = [
        (
            "Alignment",
            number(suite["alignment"]),
            "mean squared distance of pairs that mean the same: the lower, the closer they lie",
        ),
        (
            "Uniformity",
            number(suite["uniformity"]),
            "how evenly sentences fill the sphere: the lower, the more evenly",
        ),
        (
            "Anisotropy",
            number(suite["anisotropy"]),
            "mean cosine of any two sentences: near 0 where no direction is preferred",
        ),
        (
            "Effective rank",
            number(spectrum["effective_rank"], 0),
            "how many directions the vectors really use",
        ),
    ]
    return Table(
        caption=f"The {suite['sentences']:,} sentences of STS-B's test",
        columns=["What", "Figure", "Meaning"],
        rows=[[Cell(name), value, Cell(meaning)] for name, value, meaning in meanings],
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
