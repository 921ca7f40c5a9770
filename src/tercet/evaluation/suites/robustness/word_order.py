"""Pairs of nearly the same words, and how often they fool a head: HANS, PAWS, changed sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.changes import PAIR_CHANGES
from tercet.data.files import find_file
from tercet.data.folding import fold, shared_words
from tercet.data.layouts import LAYOUTS
from tercet.data.readers import read_rows
from tercet.data.split import choose_dev
from tercet.errors import TercetError, shorten
from tercet.evaluation.bootstrap import interval
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate, classification_metrics, predicted_classes
from tercet.evaluation.presentation import spread
from tercet.specs import Column, Floats, Mode, TaskSpec

OrderSet = Literal["hans", "paws"]
ORDER_SETS: tuple[OrderSet, ...] = get_args(OrderSet)
_SETS = {"hans": LAYOUTS["hans"], "paws": LAYOUTS["paws-split"]}
"""Of PAWS only the rows that no recipe trains on."""
PER_RULE = 300
"""Changed sentences of each rule."""
SEED = 11711
SAME_GRADE = 0.8
"""A grade from this share of its range on means that a pair has the same meaning: 4 of STS's 5."""
HIGH_OVERLAP = 0.8
"""Overlap is high from this share of common words on."""
_LABELS = {"entailment": 1, "non-entailment": 0, "1": 1, "0": 0}
_HEURISTIC: Column = 4

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OrderPairs:
    """n pairs.

    same: whether the first means (HANS: entails) the second [n]
    heuristics: HANS's heuristic for each pair; empty for others
    kinds: what differs between the texts of each pair; empty for HANS
    """

    first: list[str]
    second: list[str]
    same: Bools
    heuristics: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KindResult:
    """Pairs of one kind of change, and the share of right predictions."""

    pairs: int
    right: float | None


@dataclass(frozen=True, slots=True)
class OrderResult:
    """Predictions of a head for such pairs.

    accuracy: of separating the pairs that mean the same from the others
    fooled: share of the others that are predicted to mean the same
    fooled_high_overlap: that share among the `high_overlap` of them that share most words
    heuristics: that share by HANS's heuristics
    kinds: right predictions by kind of change
    """

    pairs: int
    accuracy: Estimate
    fooled: float | None
    high_overlap: int
    fooled_high_overlap: float | None
    heuristics: dict[str, float | None]
    kinds: dict[str, KindResult] = field(default_factory=dict)


def compares_pairs(task: TaskSpec) -> bool:
    """Whether a task predicts that pairs mean the same: in two classes, or by a grade."""
    two = task.labels is not None and len(task.labels) == 2 and not task.multi_label
    return (two or task.range is not None) and "single" not in task.predicting_modes


def predicts_same(task: TaskSpec, predicted: Floats) -> Bools:
    """Whether each prediction of a task that compares pairs is that they mean the same [n]."""
    if task.range is None:
        classes: Bools = predicted_classes(predicted) == 1
        return classes
    low, high = task.range
    same: Bools = predicted >= low + SAME_GRADE * (high - low)
    return same


def read_order_set(name: OrderSet, data_dir: Path, *, rows: int | None) -> OrderPairs:
    """The pairs of HANS, or of PAWS's dev rows; `rows` limits them, spread over the file."""
    layout = _SETS[name]
    assert layout.label is not None
    file = layout.train[0] if isinstance(layout.dev, float) else layout.dev[0]
    path = find_file(f"{layout.folder}/{file}", [data_dir])
    columns = [*layout.texts, layout.label, *([_HEURISTIC] if name == "hans" else [])]
    records = []
    for row in read_rows(path, columns, layout.reading):
        if row.problem is not None or None in row.values or row.values[2] not in _LABELS:
            label = shorten(row.values[2] or "")
            raise TercetError(
                f"{path} line {row.line}: should hold two texts and a label, one of "
                f"{', '.join(_LABELS)}, not {label!r}."
            )
        records.append([str(value) for value in row.values])
    if isinstance(layout.dev, float):
        texts = [[row[side] for row in records] for side in (0, 1)]
        kept_rows = choose_dev(texts, None, share=layout.dev).rows.tolist()
        records = [records[row] for row in kept_rows]
    chosen = [records[place] for place in spread(len(records), rows)]
    return OrderPairs(
        first=[row[0] for row in chosen],
        second=[row[1] for row in chosen],
        same=np.array([_LABELS[row[2]] == 1 for row in chosen], bool),
        heuristics=[row[3] for row in chosen if len(row) > 3],
        kinds=[_kind_of(*row[:2]) for row in chosen] if name == "paws" else [],
    )


def _kind_of(first: str, second: str) -> str:
    """Whether the texts of a pair have the same words, in any order."""
    left, right = (sorted(map(fold, text.split())) for text in (first, second))
    return "same words" if left == right else "other words"


def change_sentences(texts: Sequence[str], *, rows: int | None) -> OrderPairs:
    """Pairs of a sentence and itself changed by rule: as many of each rule, spread over all texts.

    rows: the most of each rule
    """
    limit = min(rows or PER_RULE, PER_RULE)
    distinct = list(dict.fromkeys(texts))
    # Some rules change few sentences: all are tried, in an order that begins all over the texts.
    order = np.random.default_rng(SEED).permutation(len(distinct)).tolist()
    pairs: list[tuple[str, str, str]] = []
    for name, rule in PAIR_CHANGES.items():
        changed = ((distinct[row], rule.change(distinct[row], SEED)) for row in order)
        found = ((text, other, str(name)) for text, other in changed if other is not None)
        pairs += islice(found, limit)
    keeps = {name for name, rule in PAIR_CHANGES.items() if rule.keeps}
    return OrderPairs(
        first=[first for first, _, _ in pairs],
        second=[second for _, second, _ in pairs],
        same=np.array([name in keeps for _, _, name in pairs], bool),
        kinds=[name for _, _, name in pairs],
    )


def measure_order(
    texts: EncodedTexts, name: str, spec: TaskSpec, pairs: OrderPairs
) -> dict[Mode, OrderResult]:
    """The result of every mode of a task that compares pairs."""
    alike = overlaps(pairs.first, pairs.second) >= HIGH_OVERLAP
    results: dict[Mode, OrderResult] = {}
    for mode in spec.predicting_modes:
        predicted = texts.predictions(name, mode, [pairs.first, pairs.second])
        results[mode] = _result(predicts_same(spec, predicted), pairs, alike)
    return results


def overlaps(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """The share of common words among all words of each pair, [n]."""
    return np.array([shared_words(*pair) for pair in zip(first, second, strict=True)])


def _result(predicted: Bools, pairs: OrderPairs, alike: Bools) -> OrderResult:
    certain = predicted.astype(np.float64)
    accuracy = classification_metrics(pairs.same, certain)["accuracy"]
    different = ~pairs.same
    heuristics, kinds = np.array(pairs.heuristics), np.array(pairs.kinds)
    right = predicted == pairs.same
    return OrderResult(
        pairs=len(predicted),
        accuracy=Estimate(accuracy, interval("accuracy", pairs.same, certain, SEED)),
        fooled=_share(predicted[different]),
        high_overlap=int((different & alike).sum()),
        fooled_high_overlap=_share(predicted[different & alike]),
        heuristics={
            name: _share(predicted[different & (heuristics == name)])
            for name in dict.fromkeys(pairs.heuristics)
        },
        kinds={
            kind: KindResult(int((kinds == kind).sum()), _share(right[kinds == kind]))
            for kind in dict.fromkeys(pairs.kinds)
        },
    )


def _share(chosen: Bools) -> float | None:
    return float(chosen.mean()) if len(chosen) else None
