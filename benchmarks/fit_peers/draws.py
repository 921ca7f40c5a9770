"""Training and test files of every cell, drawn from the public data sets."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fit_peers.cells import CELLS, DRAWS, KINDS, Cell, Row, write_rows
from tercet.data.examples import read_examples
from tercet.data.files import find_file
from tercet.data.layouts import Split
from tercet.data.senteval import (
    FOLDER,
    TREC_CLASSES,
    FoldedTask,
    Labelled,
    SplitName,
    read_folded,
    read_split,
)
from tercet.specs import TaskSpec

TEST_ROWS = 2000
POLARITY = ("negative", "positive")
SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
Pools = tuple[list[Row], list[Row] | None]
"""Rows to train on, and rows to test on where the data set has a split of its own."""


def prepare(data_dir: Path, out: Path) -> None:
    """Write `DATA/test.csv` and `DATA/SIZE.DRAW.csv` for every cell and draw."""
    for data, kind in KINDS.items():
        pool, test = split(data, *READERS[data](data_dir))
        cells = [cell for cell in CELLS if cell.data == data]
        write_rows(cells[0].test_file(out), kind, test)
        for cell in cells:
            for draw in DRAWS:
                write_rows(cell.train_file(out, draw=draw), kind, draw_rows(cell, pool, draw=draw))


def split(data: str, pool: list[Row], held_out: list[Row] | None) -> tuple[list[Row], list[Row]]:
    """Distinct rows to draw from and distinct test rows; they share no text.

    SICK makes its pairs of few sentences, its own splits share most: there they share no pair.
    """
    keys = _pair_key if data == "sick" else _text_keys
    rows = distinct(pool if held_out is None else held_out)
    chance = random.Random(f"{data}/test")
    test = rows if len(rows) <= TEST_ROWS else chance.sample(rows, TEST_ROWS)
    taken = {key for row in test for key in keys(row)}
    return [row for row in distinct(pool) if taken.isdisjoint(keys(row))], test


def draw_rows(cell: Cell, pool: Sequence[Row], *, draw: int) -> list[Row]:
    """Rows drawn by chance: the same number of every class, or from the whole pool."""
    chance = random.Random(f"{cell.name}/{draw}")
    if not cell.per_class:
        return chance.sample(pool, cell.rows)
    classes = sorted({label for _, label in pool})
    rows = [
        row
        for name in classes
        for row in chance.sample([row for row in pool if row[1] == name], cell.rows)
    ]
    chance.shuffle(rows)
    return rows


def distinct(rows: Iterable[Row]) -> list[Row]:
    """The first row of each text or pair, of those that have texts."""
    first: dict[frozenset[str], Row] = {}
    for row in rows:
        if all(text.strip() for text in row[0]):
            first.setdefault(frozenset(_text_keys(row)), row)
    return list(first.values())


def _text_keys(row: Row) -> list[str]:
    return [" ".join(text.casefold().split()) for text in row[0]]


def _pair_key(row: Row) -> list[frozenset[str]]:
    return [frozenset(_text_keys(row))]


def _named(labelled: Labelled, names: Sequence[str]) -> list[Row]:
    texts = zip(*labelled.texts, strict=True)
    return [(row, names[label]) for row, label in zip(texts, labelled.labels, strict=True)]


def _read_polarity(name: FoldedTask, data_dir: Path) -> Pools:
    names = ("objective", "subjective") if name == "SUBJ" else POLARITY
    return _named(read_folded(name, data_dir), names), None


def _read_trec(data_dir: Path) -> Pools:
    splits: tuple[SplitName, SplitName] = ("train", "test")
    train, test = (_named(read_split("TREC", name, data_dir), TREC_CLASSES) for name in splits)
    return train, test


def _read_task(
    data: dict[str, Any], task: dict[str, Any], split: Split, data_dir: Path
) -> tuple[list[tuple[str, ...]], list[float]]:
    spec = TaskSpec.model_validate({"data": data, **task})
    examples = read_examples(spec, split, data_dir)
    assert examples.labels is not None
    return list(zip(*examples.texts, strict=True)), examples.labels.tolist()


def _read_classes(
    data: dict[str, Any], names: Sequence[str], split: Split, data_dir: Path
) -> list[Row]:
    mode = "single" if names is SENTIMENTS else "cross"
    part = {"head": {"kind": "mlp"}, "objective": {"kind": "cross-entropy"}}
    texts, labels = _read_task(data, {"labels": list(names), mode: part}, split, data_dir)
    return [(row, names[int(label)]) for row, label in zip(texts, labels, strict=True)]


def _read_sst(data_dir: Path) -> Pools:
    read = partial(_read_classes, {"layout": "cs224n-sst"}, SENTIMENTS, data_dir=data_dir)
    return read("train"), read("dev")


def _read_quora(data_dir: Path) -> Pools:
    """The training file alone: the dev file has another share of duplicates."""
    data = {"layout": "cs224n-quora", "on_bad_row": "skip"}
    return _read_classes(data, ("different", "duplicate"), "train", data_dir), None


def _read_sick(data_dir: Path) -> Pools:
    splits = []
    for name in ("SICK_train.txt", "SICK_test_annotated.txt"):
        path = find_file(f"SICK/{name}", [data_dir, data_dir / FOLDER])
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            splits.append(
                [
                    ((row["sentence_A"], row["sentence_B"]), row["entailment_judgment"])
                    for row in rows
                ]
            )
    return splits[0], splits[1]


def _read_sts(data_dir: Path) -> Pools:
    """Similarities of 0 to 5 become grades of 1 to 10."""
    head = {"head": {"kind": "cosine"}, "objective": {"kind": "mean-squared-error"}}
    pools = []
    for name in ("train", "dev"):
        texts, labels = _read_task(
            {"layout": "cs224n-sts"}, {"range": [0, 5], "bi": head}, name, data_dir
        )
        grades = [f"{1 + 9 * label / 5:.2f}" for label in labels]
        pools.append(list(zip(texts, grades, strict=True)))
    return pools[0], pools[1]


READERS: dict[str, Callable[[Path], Pools]] = {
    "trec": _read_trec,
    "cr": partial(_read_polarity, "CR"),
    "mr": partial(_read_polarity, "MR"),
    "subj": partial(_read_polarity, "SUBJ"),
    "mpqa": partial(_read_polarity, "MPQA"),
    "sst-5": _read_sst,
    "sick": _read_sick,
    "quora": _read_quora,
    "sts": _read_sts,
}
