"""What the reports conclude, checked: two recipes, and which is better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Literal

from scipy import stats

from tercet.recipe import bundled
from tercet.reproduce.aspects import differing_aspects
from tercet.reproduce.table import TASKS, ExperimentRow, markdown_table

MEAN = "mean"
Verdict = Literal["agrees", "disagrees", "not distinguished", "better", "worse"]
_LEAST_FREEDOM = 4  # of a spread of seeds that can be relied on
# Tasks that these have forgotten or never learned vary far more by seed than any other.
_UNLEARNT = {
    "robust/exp02",
    "simcse/all-tasks",
    "sbert/only-sst-pretrain",
    "sbert/only-sst-finetune",
}


@dataclass(frozen=True, slots=True)
class Contrast:
    """Whether `second` is better than `first` in a task's metric, or in the mean of all three.

    change: what the comparison is named after; `differing_aspects` gives all that changed with it
    """

    change: str
    first: str
    second: str
    what: str = MEAN


CONTRASTS = (
    Contrast("rounds instead of one task after the other", "robust/exp02", "robust/exp03"),
    Contrast("tasks drawn at random", "robust/exp03", "robust/exp08"),
    Contrast("a common layer", "robust/exp03", "robust/exp05"),
    Contrast("dropout in the common layer", "robust/exp05", "robust/exp06"),
    Contrast("batch 64 instead of 32", "robust/exp07", "robust/exp08"),
    Contrast("the difference of both orders", "robust/exp08", "robust/exp09", "paraphrase"),
    Contrast("an activation, Quora twice", "robust/exp09", "robust/exp10", "paraphrase"),
    Contrast("that head for STS too", "robust/exp10", "robust/exp11", "similarity"),
    Contrast("dropout 0.5 instead of 0.3", "robust/exp11", "robust/exp13"),
    Contrast("dropout 0.1 instead of 0.3", "robust/exp11", "robust/exp14"),
    Contrast("gradient surgery", "robust/exp14", "robust/exp12"),
    Contrast("SimCSE on SNLI first", "robust/exp14", "robust/exp15"),
    Contrast("ranking of paraphrases first", "robust/exp14", "robust/mnr"),
    Contrast("SBERT's heads", "siamese/baseline", "siamese/final"),
    Contrast(
        "(u; v; u.v) instead of u.v", "siamese/concat-dot", "siamese/concat-uv-dot", "paraphrase"
    ),
    Contrast(
        "|u-v| instead of u.v", "siamese/concat-uv-dot", "siamese/concat-uv-absdiff", "paraphrase"
    ),
    Contrast(
        "rows by label counts, not inverse", "siamese/final-balanced", "siamese/final", "paraphrase"
    ),
    Contrast(
        "squared error, not classes", "siamese/sts-cross-entropy", "siamese/sts-mse", "similarity"
    ),
    Contrast("squared instead of absolute", "siamese/sts-l1", "siamese/sts-mse", "similarity"),
    Contrast("squared error, not the hinge", "siamese/sts-hinge", "siamese/sts-mse", "similarity"),
    Contrast("layers shared by pair heads", "bertology/baseline", "bertology/shared"),
    Contrast("the cosine for STS", "bertology/baseline", "bertology/head-mod", "similarity"),
    Contrast("|u-v| for paraphrase", "bertology/baseline", "bertology/head-mod", "paraphrase"),
    Contrast("the cosine, not |u-v|", "bertology/head-mod", "bertology/head-mod-1", "paraphrase"),
    Contrast(
        "targets 0..1, not -1..1", "bertology/head-mod-signed", "bertology/head-mod", "similarity"
    ),
    Contrast("frozen for SST: SST", "bertology/head-mod", "bertology/freeze-sst", "sentiment"),
    Contrast("frozen for SST: STS", "bertology/head-mod", "bertology/freeze-sst", "similarity"),
    Contrast("SST by 500 exemplars", "bertology/head-mod", "bertology/sst-to-sts", "sentiment"),
    Contrast("SST by all sentences", "bertology/sst-to-sts", "bertology/sst-knn", "sentiment"),
    Contrast("the task that needs it most", "bertology/head-mod", "bertology/needs"),
    Contrast("NLI first: regression", "bertology/head-mod", "bertology/nli-regression"),
    Contrast("NLI first: contrastive", "bertology/head-mod", "bertology/nli-contrastive"),
    Contrast("NLI first: triplets", "bertology/head-mod", "bertology/nli-triplet"),
    Contrast("NLI first: all three", "bertology/head-mod", "bertology/nli-combined"),
    Contrast("more NLI, shuffled", "bertology/nli-triplet", "bertology/nli-triplet-union"),
    Contrast("gradient surgery", "sbert/exp2", "sbert/exp1"),
    Contrast("small sets repeated", "sbert/exp1-once", "sbert/exp1"),
    Contrast("a bare cosine for paraphrase", "sbert/exp1", "sbert/exp3", "paraphrase"),
    Contrast("dropout before the cosine", "sbert/exp1", "sbert/exp4", "similarity"),
    Contrast("masked words first", "sbert/exp1", "sbert/mlm"),
    Contrast("ranking as a fourth loss", "sbert/exp1", "sbert/mnr"),
    Contrast("triplets as a fourth loss", "sbert/exp1", "sbert/triplet"),
    Contrast("the encoder trains too", "sbert/sst-pretrain", "sbert/sst-finetune", "sentiment"),
    Contrast("unsupervised SimCSE first", "simcse/bi-encoder", "simcse/unsupervised"),
    Contrast("NLI instead of sentences", "simcse/unsupervised", "simcse/supervised"),
    Contrast("pairs read jointly, frozen", "simcse/bi-encoder", "simcse/cross-encoder"),
    Contrast(
        "layers on (u; v) for STS", "simcse/supervised-linear", "simcse/supervised", "similarity"
    ),
    Contrast("masked words beside SimCSE", "simcse/unsupervised", "simcse/unsupervised-mlm"),
    Contrast("a stop rule for SimCSE", "simcse/unsupervised", "simcse/unsupervised-stop"),
    Contrast("then STS and Quora: SST", "simcse/single-sentiment", "simcse/all-tasks", "sentiment"),
    Contrast("then Quora: STS", "simcse/single-similarity", "simcse/all-tasks", "similarity"),
    Contrast(
        "after SST and STS: Quora", "simcse/single-paraphrase", "simcse/all-tasks", "paraphrase"
    ),
)


def compared_first(names: Iterable[str]) -> list[str]:
    """Recipes in their order, but those that a contrast compares before all others."""
    compared = {name for contrast in CONTRASTS for name in (contrast.first, contrast.second)}
    return sorted(names, key=lambda name: name not in compared)


@dataclass(frozen=True, slots=True)
class Difference:
    """Of two recipes on one encoder: the difference of their means over seeds.

    margin: half of its 95 % interval
    single: the same for one seed each, as the reports have them
    """

    value: float
    margin: float
    single: float
    seeds: tuple[int, int]

    @property
    def is_clear(self) -> bool:
        return abs(self.value) > self.margin


def difference(
    contrast: Contrast,
    rows: Sequence[ExperimentRow],
    elsewhere: Sequence[Sequence[ExperimentRow]] = (),
) -> Difference | None:
    """None where one of the recipes was not run.

    elsewhere: the rows of other encoders, for the spread of seeds where these have too few
    """
    by_name = {row.name: row for row in rows}
    if not {contrast.first, contrast.second} <= by_name.keys():
        return None
    first, second = (
        scores_of(by_name[name], contrast.what) for name in (contrast.first, contrast.second)
    )
    if not (first and second):
        return None
    halves = [
        _half_width(name, contrast.what, rows, elsewhere)
        for name in (contrast.first, contrast.second)
    ]
    seeds = (len(first), len(second))
    margin = math.hypot(*(half / math.sqrt(n) for half, n in zip(halves, seeds, strict=True)))
    return Difference(fmean(second) - fmean(first), margin, math.hypot(*halves), seeds)


def _half_width(
    name: str,
    what: str,
    rows: Sequence[ExperimentRow],
    elsewhere: Sequence[Sequence[ExperimentRow]],
) -> float:
    """Half of the 95 % interval of a score of one seed of a recipe.

    The spread of seeds differs between reports more than between encoders, so it is taken from
    recipes of the same report, on another encoder if need be, before all recipes of the encoder.
    A recipe that forgets has a spread of its own, of all its seeds on any encoder.
    """
    if name in _UNLEARNT:
        own = [row for each in (rows, *elsewhere) for row in each if row.name == name]
        spread, freedom = _pooled(own, what)
        return _interval(spread, freedom) if freedom else math.inf
    group = name.partition("/")[0] + "/"
    of_report = [[row for row in each if row.name.startswith(group)] for each in (rows, *elsewhere)]
    for source in (of_report[0], [row for each in of_report[1:] for row in each], rows):
        spread, freedom = spread_of_seeds(source, what)
        if freedom >= _LEAST_FREEDOM:
            return _interval(spread, freedom)
    return math.inf


def _interval(spread: float, freedom: int) -> float:
    return float(stats.t.ppf(0.975, freedom)) * spread


def scores_of(row: ExperimentRow, what: str) -> list[float]:
    """A task's metric of each seed, or the mean of all three; empty where one is missing."""
    names = list(TASKS) if what == MEAN else [what]
    if not set(names) <= row.measured.keys():
        return []
    each = [row.measured[name].values for name in names]
    return [fmean(values) for values in zip(*each, strict=True)]


def spread_of_seeds(rows: Iterable[ExperimentRow], what: str) -> tuple[float, int]:
    """The standard deviation between seeds, pooled over recipes, and its degrees of freedom.

    Recipes that forget or never learn a task are left out.
    """
    return _pooled([row for row in rows if row.name not in _UNLEARNT], what)


def _pooled(rows: Iterable[ExperimentRow], what: str) -> tuple[float, int]:
    scores = [scores_of(row, what) for row in rows]
    several = [values for values in scores if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    squares = math.fsum((len(values) - 1) * variance(values) for values in several)
    return (math.sqrt(squares / freedom), freedom) if freedom else (0.0, 0)


def verdict(published: float | None, found: Difference) -> Verdict:
    """What a difference says about the published one, if that is more than chance itself."""
    if not found.is_clear:
        return "not distinguished"
    if published is None or abs(published) <= found.single:
        return "better" if found.value > 0.0 else "worse"
    return "agrees" if (published > 0.0) == (found.value > 0.0) else "disagrees"


def published_difference(
    contrast: Contrast, published: Mapping[str, Mapping[str, float]]
) -> float | None:
    """What the report gives; None where it lacks one of the two.

    published: by recipe and task
    """
    names = list(TASKS) if contrast.what == MEAN else [contrast.what]
    both = [published.get(name, {}) for name in (contrast.first, contrast.second)]
    if not all(set(names) <= scores.keys() for scores in both):
        return None
    first, second = (fmean(scores[task] for task in names) for scores in both)
    return second - first


def contrasts_table(tables: Mapping[str, Sequence[ExperimentRow]]) -> list[str]:
    """One line per contrast, one column per encoder."""
    heads = ["change", "from", "to", "differ in", "in", "report", *tables]
    recipes = {recipe.name: recipe.parse() for recipe in bundled()}
    given = {name: recipe.published or {} for name, recipe in recipes.items()}
    lines = []
    for contrast in CONTRASTS:
        published = published_difference(contrast, given)
        cells = [contrast.change, contrast.first, contrast.second]
        cells.append(
            ", ".join(differing_aspects(recipes[contrast.first], recipes[contrast.second]))
        )
        cells += [TASKS.get(contrast.what, contrast.what), _signed(published)]
        for encoder, rows in tables.items():
            others = [each for name, each in tables.items() if name != encoder]
            cells.append(_cell(published, difference(contrast, rows, others)))
        lines.append([cell.replace("|", "\\|") for cell in cells])
    return markdown_table(heads, lines)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.3f}"


def _cell(published: float | None, found: Difference | None) -> str:
    if found is None:
        return "not run"
    said = verdict(published, found)
    shown = said if said == "not distinguished" else f"**{said}**"
    margin = f" ± {found.margin:.3f}" if math.isfinite(found.margin) else ""
    return f"{found.value:+.3f}{margin}, {shown} ({found.seeds[0]}, {found.seeds[1]})"
