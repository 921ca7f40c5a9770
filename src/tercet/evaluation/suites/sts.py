"""The suite `sts`: how well cosines of vectors follow people's grades of similarity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import read_texts
from tercet.data.folding import fold
from tercet.data.layouts import find_split
from tercet.data.senteval import STS_SETS, GradedPairs, StsSet, read_sts
from tercet.data.sketch import Sketch
from tercet.evaluation import presentation as show
from tercet.evaluation.answers import rounded
from tercet.evaluation.bootstrap import estimates
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate, grade_metrics
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult, note_missing
from tercet.model import Model
from tercet.specs import DataSpec

SEED = 11711
INTERVAL = show.INTERVAL
DOTS = 500
"""Pairs per chart."""
Pair = frozenset[str]
"""Both texts of a pair in either order, folded: copies of a sentence differ in case, blanks and
final stops."""
LEAKING = "cs224n-sts"
"""The layout whose train and dev files hold pairs of STS-B's test set, and of the years that STS-B
was chosen from."""


@dataclass(frozen=True, slots=True)
class SetResult:
    """One STS set.

    ungraded: pairs of its files that have no grade
    grades, cosines: float64 [n]
    """

    ungraded: int
    spearman: Estimate
    pearson: Estimate
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
class StsResult(SuiteResult):
    """The sets that could be measured.

    unleaked: the sets without the pairs that are in the training or dev data of a task, where a
        model has such a task; a set without such pairs is the one of `sets`
    """

    sets: dict[StsSet, SetResult]
    unleaked: dict[StsSet, SetResult] | None
    missing: list[Missing] = field(default_factory=list)
    by_width: dict[int, float | None] = field(default_factory=dict)
    """The average, without leaked pairs where there are any, of vectors that are cut to each of the
    model's lesser widths."""

    @property
    def average(self) -> float | None:
        """Mean of the seven Spearman correlations; None unless all are defined."""
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
            **({"average_by_width": self.by_width} if self.by_width else {}),
        }

    def metrics(self) -> dict[str, Estimate]:
        values = {f"{name}, spearman": result.spearman for name, result in self.sets.items()}
        values["average"] = Estimate(self.average)
        if self.unleaked is not None:
            values |= {f"{name}, spearman": result.spearman for name, result in self._reduced()}
            values["average without leaked pairs"] = Estimate(self.average_unleaked)
        values |= {f"average at width {width}": Estimate(it) for width, it in self.by_width.items()}
        return values

    def tables(self) -> list[show.Table]:
        """Spearman and Pearson correlation of every set, and the averages."""
        rows = [[show.Cell(name), *_cells(result)] for name, result in self.sets.items()]
        rows.append(_average_row("Average of seven", self.average))
        if self.unleaked is not None:
            rows += [[show.Cell(name), *_cells(result)] for name, result in self._reduced()]
            rows.append(_average_row("Average without leaked pairs", self.average_unleaked))
        fair = "" if self.unleaked is None else " without leaked pairs"
        rows += [
            _average_row(f"Average{fair} at width {width}", average)
            for width, average in self.by_width.items()
        ]
        table = show.Table(
            caption="Correlation of cosines with people's grades; averages are of Spearman's",
            columns=["Set", "Spearman", INTERVAL, "Pearson", f"{INTERVAL} of Pearson", "Pairs"],
            rows=rows,
        )
        return [table] if self.sets else []

    def charts(self) -> list[show.Chart]:
        return [_scatter(name, result) for name, result in self.sets.items()]

    def headlines(self) -> list[show.Headline]:
        metric = "Spearman, average of seven sets"
        if self.unleaked is not None:
            metric += ", without leaked pairs"
        average = self._fair_average
        return [] if average is None else [show.Headline("STS", metric, Estimate(average))]

    def findings(self) -> dict[str, str]:
        sentences = []
        if (average := self._fair_average) is not None:
            sentences.append(
                "Cosines of vectors follow people's grades with a Spearman correlation of "
                f"{average:.3f}, the average of seven sets."
            )
        if self.unleaked is not None:
            left, total = (
                sum(len(result.grades) for result in sets.values())
                for sets in (self.unleaked, self.sets)
            )
            sentences.append(
                f"{total - left:,} of the {total:,} pairs are left out, because they are in the "
                "training or dev data of a task."
            )
        return {"STS": " ".join(sentences)} if sentences else {}

    @property
    def _fair_average(self) -> float | None:
        """The average that leaked pairs do not raise."""
        return self.average if self.unleaked is None else self.average_unleaked

    def _reduced(self) -> Iterator[tuple[str, SetResult]]:
        """The sets that lost pairs, with their names in tables."""
        for name, result in (self.unleaked or {}).items():
            if result is not self.sets[name]:
                yield f"{name} without leaked pairs", result


class Sts(Suite):
    name = "sts"
    title = "Semantic textual similarity"
    description = "STS12 to STS16, STS-B and SICK-R: cosines against people's grades"
    intro = (
        "Pairs of sentences that people graded by similarity of meaning. No head is used: the "
        "metric compares the order of the cosines of both vectors with that of the grades."
    )

    def __init__(self, sets: Sequence[StsSet] = STS_SETS) -> None:
        self.sets = sets

    def run(self, context: Context) -> StsResult:
        """Correlations of cosines with grades, over all pairs of a set together."""
        texts = context.texts
        missing: list[Missing] = []
        pairs: dict[StsSet, GradedPairs] = {}
        for name in self.sets:
            with note_missing(missing, self.name, name):
                pairs[name] = read_sts(name, context.data)
        texts.embed([text for each in pairs.values() for text in (*each.first, *each.second)])
        results = {name: _measure(texts, each) for name, each in pairs.items()}
        unleaked, fair = None, pairs
        models = (context.model, *context.compared)
        leaking = next(filter(None, map(leaking_data, models)), None)
        sketches = [model.sketch for model in models if model.sketch is not None]
        if pairs and (leaking is not None or sketches):
            with note_missing(missing, self.name, "all sets without leaked pairs"):
                held = set[Pair]() if leaking is None else held_pairs(leaking, context.data)
                fair = {name: without_leaks(each, held, sketches) for name, each in pairs.items()}
                unleaked = {
                    name: results[name] if each is pairs[name] else _measure(texts, each)
                    for name, each in fair.items()
                }
        return StsResult(results, unleaked, missing, _by_width(texts, fair))


def _by_width(texts: EncodedTexts, pairs: Mapping[StsSet, GradedPairs]) -> dict[int, float | None]:
    """The average of all sets at each width to which the model's vectors can be cut."""
    averages = {}
    for width in texts.model.widths[:-1]:
        found = {
            name: grade_metrics(each.grades, texts.cosines(each.first, each.second, width=width))
            for name, each in pairs.items()
        }
        averages[width] = _mean({name: values["spearman"] for name, values in found.items()})
    return averages


def leaking_data(model: Model) -> DataSpec | None:
    """The data of a task of the model, where these data hold pairs of STS sets."""
    specs = (task.data for task in model.info.tasks.values())
    return next((data for data in specs if data.layout == LEAKING), None)


def held_pairs(data: DataSpec, data_dir: Path) -> set[Pair]:
    """The pairs in the train and dev files of a task."""
    held: set[Pair] = set()
    for split in ("train", "dev"):
        for path in find_split(data, split, data_dir):
            held.update(_folded(*read_texts(path, ["sentence1", "sentence2"], width=2)))
    return held


def without_leaks(
    pairs: GradedPairs, held: set[Pair], sketches: Sequence[Sketch] = ()
) -> GradedPairs:
    """The pairs that are neither held nor in a sketch; the same object where none is."""
    keys = _folded(pairs.first, pairs.second)
    seen = np.array([key in held for key in keys], np.bool_)
    for sketch in sketches:
        seen |= sketch.seen([pairs.first, pairs.second])
    kept_rows = np.flatnonzero(~seen)
    if len(kept_rows) == len(keys):
        return pairs
    return GradedPairs(
        first=[pairs.first[row] for row in kept_rows],
        second=[pairs.second[row] for row in kept_rows],
        grades=pairs.grades[kept_rows],
        ungraded=pairs.ungraded,
    )


def _folded(first: Iterable[str], second: Iterable[str]) -> list[Pair]:
    return [frozenset(map(fold, pair)) for pair in zip(first, second, strict=True)]


def _measure(texts: EncodedTexts, pairs: GradedPairs) -> SetResult:
    cosines = texts.cosines(pairs.first, pairs.second)
    values = estimates(grade_metrics(pairs.grades, cosines), pairs.grades, cosines, SEED)
    return SetResult(
        ungraded=pairs.ungraded,
        spearman=values["spearman"],
        pearson=values["pearson"],
        grades=pairs.grades,
        cosines=cosines,
    )


def _to_json(sets: Mapping[StsSet, SetResult]) -> dict[str, Any]:
    return {name: result.to_json() for name, result in sets.items()}


def _average(sets: dict[StsSet, SetResult]) -> float | None:
    return _mean({name: result.spearman.value for name, result in sets.items()})


def _mean(spearman: Mapping[StsSet, float | None]) -> float | None:
    """Of the seven sets; None unless all are defined."""
    values = [spearman[name] for name in STS_SETS if name in spearman]
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(STS_SETS) if len(defined) == len(STS_SETS) else None


def _cells(result: SetResult) -> list[show.Cell]:
    values = [*show.estimate_cells(result.spearman), *show.estimate_cells(result.pearson)]
    return [*values, show.count(len(result.grades))]


def _average_row(name: str, average: float | None) -> list[show.Cell]:
    return [show.Cell(name), show.number(average), *[show.Cell("")] * 4]


def _scatter(name: str, result: SetResult) -> show.Chart:
    rows = show.spread(len(result.grades), DOTS)
    grades, cosines = result.grades[rows].tolist(), result.cosines[rows].tolist()
    return show.Chart(
        title=name,
        alternative=(
            f"Scatter of cosines over grades of {len(result.grades):,} pairs of {name}, of which "
            f"{len(rows):,} are drawn; Spearman {show.decimal(result.spearman.value)}."
        ),
        x=show.Axis("grade", -0.1, 5.1),
        y=show.Axis("cosine", *show.padded(cosines)),
        series=[show.Series(name, list(zip(grades, cosines, strict=True)), kind="cloud")],
    )
