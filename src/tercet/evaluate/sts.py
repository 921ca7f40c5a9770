"""The suite `sts`: how cosines of vectors follow people's grades of similarity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import read_texts
from tercet.data.files import MissingFileError
from tercet.data.layouts import find_split
from tercet.data.senteval import STS_SETS, GradedPairs, StsSet, read_sts
from tercet.evaluate.bootstrap import interval
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.metrics import grade_metrics
from tercet.evaluate.results import Figure, Missing, rounded
from tercet.model import Model
from tercet.specs import DataSpec

SEED = 11711
Pair = frozenset[str]
"""Both texts of a pair in either order, without blanks, whatever their case: the same sentence is
spelt with and without them."""
LEAKING = "cs224n-sts"
"""The layout whose train and dev files hold pairs of STS-B's test, and of the years that STS-B was
chosen from."""


@dataclass(frozen=True, slots=True)
class SetResult:
    """One STS set.

    ungraded: pairs of its files that were left out for want of a grade
    grades, cosines: float64 [n]
    """

    ungraded: int
    spearman: Figure
    pearson: Figure
    grades: NDArray[np.float64]
    cosines: NDArray[np.float64]

    def to_json(self) -> dict[str, Any]:
        return {
            "pairs": len(self.grades),
            "ungraded": self.ungraded,
            "spearman": self.spearman.to_json(),
            "pearson": self.pearson.to_json(),
            "grades": rounded(self.grades),
            "cosines": rounded(self.cosines),
        }


@dataclass(frozen=True, slots=True)
class StsResult:
    """The sets that could be measured.

    unleaked: the sets without the pairs that the data of a model's own task holds, where it has
        such a task; those that hold none are left as they are
    """

    sets: dict[StsSet, SetResult]
    unleaked: dict[StsSet, SetResult] | None
    missing: list[Missing]

    @property
    def average(self) -> float | None:
        """Mean of the seven Spearman correlations; None unless all are there."""
        return _average(self.sets)

    @property
    def average_unleaked(self) -> float | None:
        """The same without leaked pairs."""
        return None if self.unleaked is None else _average(self.unleaked)

    def to_json(self) -> dict[str, Any]:
        return {
            "sets": _to_json(self.sets),
            "average": self.average,
            "without_leaked_pairs": None if self.unleaked is None else _to_json(self.unleaked),
            "average_without_leaked_pairs": self.average_unleaked,
        }


def evaluate_sts(
    corpus: Corpus,
    data_dir: Path,
    *,
    sets: Sequence[StsSet] = STS_SETS,
    leaking: DataSpec | None = None,
) -> StsResult:
    """Spearman and Pearson correlation of cosines with grades, all pairs of a set together.

    leaking: data whose pairs are left out in a second measurement; that of the model's own tasks
        when left out
    """
    leaking = leaking or leaking_data(corpus.model)
    pairs: dict[StsSet, GradedPairs] = {}
    missing: list[Missing] = []
    for name in sets:
        try:
            pairs[name] = read_sts(name, data_dir)
        except MissingFileError as error:
            missing.append(Missing("sts", name, error.file))
    corpus.embed([text for found in pairs.values() for text in (*found.first, *found.second)])
    results = {name: _measure(corpus, found) for name, found in pairs.items()}
    unleaked = None
    if pairs and leaking is not None:
        try:
            held = held_pairs(leaking, data_dir)
            kept = {name: without_leaks(found, held) for name, found in pairs.items()}
            unleaked = {
                name: results[name] if one is pairs[name] else _measure(corpus, one)
                for name, one in kept.items()
            }
        except MissingFileError as error:
            missing.append(Missing("sts", "all sets without leaked pairs", error.file))
    return StsResult(results, unleaked, missing)


def leaking_data(model: Model) -> DataSpec | None:
    """The data of a task that the model was trained on and that holds pairs of STS sets."""
    specs = (task.data for task in model.info.tasks.values())
    return next((data for data in specs if data.layout == LEAKING), None)


def held_pairs(data: DataSpec, data_dir: Path) -> set[Pair]:
    """The pairs that the train and dev files of a task hold."""
    held: set[Pair] = set()
    for split in ("train", "dev"):
        for path in find_split(data, split, data_dir):
            held.update(_folded(*read_texts(path, ["sentence1", "sentence2"], width=2)))
    return held


def without_leaks(pairs: GradedPairs, held: set[Pair]) -> GradedPairs:
    """The pairs that are not held; themselves where none is."""
    keys = _folded(pairs.first, pairs.second)
    kept = [row for row, key in enumerate(keys) if key not in held]
    if len(kept) == len(keys):
        return pairs
    return GradedPairs(
        first=[pairs.first[row] for row in kept],
        second=[pairs.second[row] for row in kept],
        grades=pairs.grades[kept],
        ungraded=pairs.ungraded,
    )


def _folded(first: Iterable[str], second: Iterable[str]) -> list[Pair]:
    return [
        frozenset("".join(text.casefold().split()) for text in pair)
        for pair in zip(first, second, strict=True)
    ]


def _measure(corpus: Corpus, pairs: GradedPairs) -> SetResult:
    cosines = corpus.cosines(pairs.first, pairs.second)
    figures = {
        metric: Figure(value, interval(metric, pairs.grades, cosines, SEED))
        for metric, value in grade_metrics(pairs.grades, cosines).items()
    }
    return SetResult(
        ungraded=pairs.ungraded,
        spearman=figures["spearman"],
        pearson=figures["pearson"],
        grades=pairs.grades,
        cosines=cosines,
    )


def _to_json(sets: Mapping[StsSet, SetResult]) -> dict[str, Any]:
    return {name: result.to_json() for name, result in sets.items()}


def _average(sets: dict[StsSet, SetResult]) -> float | None:
    values = [sets[name].spearman.value for name in STS_SETS if name in sets]
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(STS_SETS) if len(defined) == len(STS_SETS) else None
