"""HANS and PAWS: pairs of the same words in another order, and whom they fool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tercet.data.columns import shorten
from tercet.data.files import find_file
from tercet.data.layouts import LAYOUTS
from tercet.data.readers import read_rows
from tercet.errors import TercetError
from tercet.evaluate.bootstrap import interval
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.metrics import classification_metrics, predicted_classes
from tercet.evaluate.results import Figure, predicting_modes
from tercet.infer.engine import Floats
from tercet.specs import Column, Mode, TaskSpec

OrderSet = Literal["hans", "paws"]
ORDER_SETS: tuple[OrderSet, ...] = get_args(OrderSet)
SEED = 11711
SAME_GRADE = 0.8
"""From this share of its range on a grade says that a pair means the same: 4 of STS's 5."""
HIGH_OVERLAP = 0.8
"""Share of the words of either sentence that both have, where overlap counts as high."""
_LABELS = {"entailment": 1, "non-entailment": 0, "1": 1, "0": 0}
_HEURISTIC: Column = 4

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OrderPairs:
    """n pairs; same: whether the first means (HANS: entails) the second [n].

    heuristics: by which HANS made each pair; none for PAWS
    """

    first: list[str]
    second: list[str]
    same: Bools
    heuristics: list[str]


@dataclass(frozen=True, slots=True)
class OrderResult:
    """What a head makes of such pairs.

    accuracy: of telling the pairs that mean the same from the others
    fooled: share of the others that are said to mean the same
    fooled_high_overlap: that share among the `high_overlap` of them that share most words
    heuristics: that share by HANS's heuristics
    """

    pairs: int
    accuracy: Figure
    fooled: float | None
    high_overlap: int
    fooled_high_overlap: float | None
    heuristics: dict[str, float | None]

    def to_json(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "accuracy": self.accuracy.to_json(),
            "fooled": self.fooled,
            "high_overlap": self.high_overlap,
            "fooled_high_overlap": self.fooled_high_overlap,
            "heuristics": self.heuristics,
        }


def compares_pairs(task: TaskSpec) -> bool:
    """Whether a task says of pairs that they mean the same: in two classes, or by a grade."""
    two = task.labels is not None and len(task.labels) == 2
    return (two or task.range is not None) and "single" not in predicting_modes(task)


def says_same(task: TaskSpec, predicted: Floats) -> Bools:
    """Predictions of a task that compares pairs, to whether each says that they mean the same."""
    if task.range is None:
        classes: Bools = predicted_classes(predicted) == 1
        return classes
    low, high = task.range
    said: Bools = predicted >= low + SAME_GRADE * (high - low)
    return said


def read_order_set(name: OrderSet, data_dir: Path, *, rows: int | None) -> OrderPairs:
    """The pairs of HANS or PAWS; of fewer `rows`, spread over the file."""
    layout = LAYOUTS[name]
    assert layout.label is not None
    path = find_file(f"{layout.folder}/{layout.dev[0]}", [data_dir])
    columns = [*layout.texts, layout.label, *([_HEURISTIC] if name == "hans" else [])]
    found = []
    for row in read_rows(path, columns, layout.reading):
        if row.problem is not None or None in row.values or row.values[2] not in _LABELS:
            label = shorten(row.values[2] or "")
            raise TercetError(
                f"{path} line {row.line}: should hold two texts and a label, one of "
                f"{', '.join(_LABELS)}, not {label!r}."
            )
        found.append([str(value) for value in row.values])
    chosen = [found[place] for place in spread(len(found), rows)]
    return OrderPairs(
        first=[row[0] for row in chosen],
        second=[row[1] for row in chosen],
        same=np.array([_LABELS[row[2]] == 1 for row in chosen], bool),
        heuristics=[row[3] for row in chosen if len(row) > 3],
    )


def spread(count: int, wanted: int | None) -> NDArray[np.int64]:
    """Places of at most `wanted` rows, evenly over `count`."""
    kept = count if wanted is None else min(count, wanted)
    return np.linspace(0, count - 1, kept).round().astype(np.int64)


def measure_order(
    corpus: Corpus, name: str, spec: TaskSpec, pairs: OrderPairs
) -> dict[Mode, OrderResult]:
    """What every mode of a task that compares pairs makes of them."""
    alike = overlaps(pairs.first, pairs.second) >= HIGH_OVERLAP
    results: dict[Mode, OrderResult] = {}
    for mode in predicting_modes(spec):
        predicted = corpus.predictions(name, mode, [pairs.first, pairs.second])
        results[mode] = _result(says_same(spec, predicted), pairs, alike)
    return results


def overlaps(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """Of each pair, the words that both have among the words that either has, [n]."""
    shares = []
    for pair in zip(first, second, strict=True):
        left, right = (set(text.lower().split()) for text in pair)
        shares.append(len(left & right) / max(1, len(left | right)))
    return np.array(shares)


def _result(said: Bools, pairs: OrderPairs, alike: Bools) -> OrderResult:
    certain = said.astype(np.float64)
    accuracy = classification_metrics(pairs.same, certain)["accuracy"]
    different = ~pairs.same
    kinds = np.array(pairs.heuristics)
    return OrderResult(
        pairs=len(said),
        accuracy=Figure(accuracy, interval("accuracy", pairs.same, certain, SEED)),
        fooled=_share(said[different]),
        high_overlap=int((different & alike).sum()),
        fooled_high_overlap=_share(said[different & alike]),
        heuristics={
            kind: _share(said[different & (kinds == kind)])
            for kind in dict.fromkeys(pairs.heuristics)
        },
    )


def _share(chosen: Bools) -> float | None:
    return float(chosen.mean()) if len(chosen) else None
