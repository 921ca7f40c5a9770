"""HANS and PAWS: pairs of the same words in another order, and how often they fool a head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.files import find_file
from tercet.data.layouts import LAYOUTS
from tercet.data.readers import read_rows
from tercet.errors import TercetError, shorten
from tercet.evaluation.bootstrap import interval
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate, classification_metrics, predicted_classes
from tercet.evaluation.presentation import spread
from tercet.specs import Column, Floats, Mode, TaskSpec

OrderSet = Literal["hans", "paws"]
ORDER_SETS: tuple[OrderSet, ...] = get_args(OrderSet)
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
    heuristics: HANS's heuristic for each pair; empty for PAWS
    """

    first: list[str]
    second: list[str]
    same: Bools
    heuristics: list[str]


@dataclass(frozen=True, slots=True)
class OrderResult:
    """Predictions of a head for such pairs.

    accuracy: of separating the pairs that mean the same from the others
    fooled: share of the others that are predicted to mean the same
    fooled_high_overlap: that share among the `high_overlap` of them that share most words
    heuristics: that share by HANS's heuristics
    """

    pairs: int
    accuracy: Estimate
    fooled: float | None
    high_overlap: int
    fooled_high_overlap: float | None
    heuristics: dict[str, float | None]


def compares_pairs(task: TaskSpec) -> bool:
    """Whether a task predicts that pairs mean the same: in two classes, or by a grade."""
    two = task.labels is not None and len(task.labels) == 2
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
    """The pairs of HANS or PAWS; `rows` limits them, spread over the file."""
    layout = LAYOUTS[name]
    assert layout.label is not None
    path = find_file(f"{layout.folder}/{layout.dev[0]}", [data_dir])
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
    chosen = [records[place] for place in spread(len(records), rows)]
    return OrderPairs(
        first=[row[0] for row in chosen],
        second=[row[1] for row in chosen],
        same=np.array([_LABELS[row[2]] == 1 for row in chosen], bool),
        heuristics=[row[3] for row in chosen if len(row) > 3],
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
    shares = []
    for pair in zip(first, second, strict=True):
        left, right = (set(text.lower().split()) for text in pair)
        shares.append(len(left & right) / max(1, len(left | right)))
    return np.array(shares)


def _result(predicted: Bools, pairs: OrderPairs, alike: Bools) -> OrderResult:
    certain = predicted.astype(np.float64)
    accuracy = classification_metrics(pairs.same, certain)["accuracy"]
    different = ~pairs.same
    kinds = np.array(pairs.heuristics)
    return OrderResult(
        pairs=len(predicted),
        accuracy=Estimate(accuracy, interval("accuracy", pairs.same, certain, SEED)),
        fooled=_share(predicted[different]),
        high_overlap=int((different & alike).sum()),
        fooled_high_overlap=_share(predicted[different & alike]),
        heuristics={
            kind: _share(predicted[different & (kinds == kind)])
            for kind in dict.fromkeys(pairs.heuristics)
        },
    )


def _share(chosen: Bools) -> float | None:
    return float(chosen.mean()) if len(chosen) else None
