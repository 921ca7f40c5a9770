"""The suite `geometry`: alignment, uniformity, anisotropy, spectrum and a map of the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import read_examples
from tercet.data.senteval import GradedPairs, StsSet, read_sts
from tercet.errors import shorten
from tercet.evaluation import presentation as show
from tercet.evaluation.answers import rounded
from tercet.evaluation.encoded_texts import EncodedTexts
from tercet.evaluation.metrics import Estimate
from tercet.evaluation.suite import Context, Missing, Suite, SuiteResult, note_missing

ALIKE = 4.0
"""Pairs graded above this should be close, as in SimCSE."""
MAPPED = 1_000
BLOCK = 1_024
CURVE = 200
"""Points on a chart."""
STS_B: StsSet = "STS-B"

MEANINGS = {
    "Alignment": "mean squared distance of pairs that mean the same; lower is closer",
    "Uniformity": "how evenly sentences cover the sphere; lower is more even",
    "Anisotropy": "mean cosine of any two sentences; near 0 if no direction is preferred",
    "Effective rank": "number of directions that the vectors use",
}
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Singular values of the centred vectors.

    shares: the share of each square in the sum of squares, falling
    effective_rank: exp of the entropy of the shares of the values (Roy and Vetterli, 2007)
    """

    shares: Floats
    effective_rank: float | None


@dataclass(frozen=True, slots=True)
class Projection:
    """Sentences of the tasks' dev data on their two principal components.

    points: [n, 2]
    texts: not in the JSON
    groups: the task of each; STS-B where the model has none
    explained: the share of the variance that each component explains
    """

    points: Floats
    texts: list[str]
    groups: list[str]
    explained: list[float]


@dataclass(frozen=True, slots=True)
class GeometryResult(SuiteResult):
    """Measures of vectors of length 1; None where they are undefined or STS-B is missing.

    alignment: mean squared distance of pairs that mean the same
    uniformity: log of the mean of exp(-2 d^2) over all pairs of sentences
    anisotropy: mean cosine of all pairs of sentences
    sentences: number of different sentences that these are measured on
    """

    alignment: float | None
    uniformity: float | None
    anisotropy: float | None
    sentences: int
    spectrum: Spectrum | None
    map: Projection | None
    missing: list[Missing] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        spectrum, plane = self.spectrum, self.map
        return {
            "alignment": self.alignment,
            "uniformity": self.uniformity,
            "anisotropy": self.anisotropy,
            "sentences": self.sentences,
            "spectrum": spectrum
            and {
                "shares": spectrum.shares.round(6).tolist(),
                "effective_rank": spectrum.effective_rank,
            },
            "map": plane
            and {
                "method": "pca",
                "points": rounded(plane.points),
                "groups": plane.groups,
                "explained": plane.explained,
            },
        }

    def metrics(self) -> dict[str, Estimate]:
        return {
            "alignment": Estimate(self.alignment),
            "uniformity": Estimate(self.uniformity),
            "anisotropy": Estimate(self.anisotropy),
        }

    def tables(self) -> list[show.Table]:
        if not self.sentences:
            return []
        rank = None if self.spectrum is None else self.spectrum.effective_rank
        values = [show.number(it) for it in (self.alignment, self.uniformity, self.anisotropy)]
        values.append(show.number(rank, 0))
        return [
            show.Table(
                caption=f"The {self.sentences:,} sentences of STS-B's test set",
                columns=["Measure", "Value", "Meaning"],
                rows=[
                    [show.Cell(name), value, show.Cell(meaning)]
                    for (name, meaning), value in zip(MEANINGS.items(), values, strict=True)
                ],
            )
        ]

    def charts(self) -> list[show.Chart | show.SentenceMap]:
        charts: list[show.Chart | show.SentenceMap] = []
        if self.map is not None:
            charts.append(_sentence_map(self.map))
        if self.spectrum is not None:
            charts.append(_spectrum_chart(self.spectrum.shares))
        return charts


class Geometry(Suite):
    name = "geometry"
    title = "Geometry"
    description = "alignment, uniformity, anisotropy and a map of the vectors"
    intro = "How the vectors are distributed in their space."

    def run(self, context: Context) -> GeometryResult:
        """Measure the sentences of STS-B's test set, and map dev sentences of the model's tasks."""
        missing: list[Missing] = []
        pairs = None
        with note_missing(missing, self.name, STS_B):
            pairs = read_sts(STS_B, context.data)
        plane = _project_sentences(context, pairs, missing)
        if pairs is None:
            return GeometryResult(None, None, None, 0, None, plane, missing)
        sentences = list(dict.fromkeys([*pairs.first, *pairs.second]))
        vectors = context.texts.embed(sentences).astype(np.float64)
        return GeometryResult(
            alignment=_alignment_of(context.texts, pairs),
            uniformity=uniformity(vectors),
            anisotropy=anisotropy(vectors),
            sentences=len(sentences),
            spectrum=spectrum(vectors),
            map=plane,
            missing=missing,
        )


def alignment(first: Floats, second: Floats) -> float | None:
    """Mean squared distance of the vectors of pairs that mean the same, [n, width] each."""
    return float(((first - second) ** 2).sum(axis=1).mean()) if len(first) else None


def uniformity(vectors: Floats) -> float | None:
    """log of the mean of exp(-2 d^2) over all pairs of vectors [n, width]; lower is more even."""
    count = len(vectors)
    if count < 2:
        return None
    squares = (vectors**2).sum(axis=1)
    total = 0.0
    for start in range(0, count, BLOCK):
        block = vectors[start : start + BLOCK]
        distances = squares[start : start + BLOCK, None] + squares - 2.0 * block @ vectors.T
        total += float(np.exp(-2.0 * np.maximum(distances, 0.0)).sum())
    # Each vector is paired with itself once, at distance 0.
    return float(np.log((total - count) / (count * (count - 1))))


def anisotropy(vectors: Floats) -> float | None:
    """Mean cosine of all pairs of vectors of length 1, [n, width]."""
    count = len(vectors)
    if count < 2:
        return None
    summed = vectors.sum(axis=0)
    own = float((vectors**2).sum())
    return (float(summed @ summed) - own) / (count * (count - 1))


def spectrum(vectors: Floats) -> Spectrum:
    """How the variance of vectors [n, width] is distributed over directions."""
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)
    squares = values**2
    if not squares.sum() > 0.0:
        return Spectrum(np.zeros_like(values), None)
    shares = values / values.sum()
    used = shares[shares > 0.0]
    return Spectrum(squares / squares.sum(), float(np.exp(-(used * np.log(used)).sum())))


def project(vectors: Floats) -> tuple[Floats, list[float]]:
    """The two principal components of vectors [n, width], [n, 2], and their shares of variance.

    The sign of each axis makes its greatest weight positive.
    """
    _, values, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    axes = directions[:2]
    heaviest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), heaviest])[:, None]
    total = float((values**2).sum()) or 1.0
    points: Floats = (vectors - vectors.mean(axis=0)) @ axes.T
    return points, [float(value**2) / total for value in values[:2]]


def _alignment_of(encoded: EncodedTexts, pairs: GradedPairs) -> float | None:
    alike = np.flatnonzero(pairs.grades > ALIKE)
    sides = [[side[row] for row in alike] for side in (pairs.first, pairs.second)]
    first, second = (encoded.embed(side).astype(np.float64) for side in sides)
    return alignment(first, second)


def _project_sentences(
    context: Context, pairs: GradedPairs | None, missing: list[Missing]
) -> Projection | None:
    columns: dict[str, Sequence[str]] = {}
    for name, spec in context.model.tasks.items():
        with note_missing(missing, Geometry.name, name):
            columns[name] = read_examples(spec, "dev", context.data).texts[0]
    if not columns and pairs is not None:
        columns[STS_B] = pairs.first
    chosen = {
        (column[place], name): None
        for name, column in columns.items()
        for place in show.spread(len(column), MAPPED // len(columns)).tolist()
    }
    if len(chosen) < 3:
        return None
    texts, groups = [text for text, _ in chosen], [group for _, group in chosen]
    points, explained = project(context.texts.embed(texts).astype(np.float64))
    return Projection(points, texts, groups, explained)


def _sentence_map(plane: Projection) -> show.SentenceMap:
    share = sum(plane.explained)
    counts = ", ".join(
        f"{plane.groups.count(name):,} of {name}" for name in dict.fromkeys(plane.groups)
    )
    return show.SentenceMap(
        title="Dev sentences on a plane",
        alternative=(
            f"Map of {len(plane.groups):,} sentences by two principal components, which explain "
            f"{share:.0%} of the variance: {counts}. The slider below reads them out."
        ),
        points=[
            show.MapPoint(x, y, shorten(text, show.SHOWN), group)
            for (x, y), text, group in zip(
                plane.points.tolist(), plane.texts, plane.groups, strict=True
            )
        ],
        note=(
            "Similar sentences are close, as far as a plane can show it: its two principal "
            f"components explain {share:.0%} of the variance."
        ),
    )


def _spectrum_chart(shares: Floats) -> show.Chart:
    total = np.cumsum(shares)
    points = [
        (place + 1.0, float(total[place])) for place in show.spread(len(shares), CURVE).tolist()
    ]
    half = int(np.searchsorted(total, 0.5)) + 1
    return show.Chart(
        title="Variance explained by the first directions",
        alternative=(
            f"Share of the vectors' variance that their first directions explain: {half:,} of "
            f"{len(shares):,} explain half of it."
        ),
        x=show.Axis("directions", 0.0, float(len(shares))),
        y=show.Axis("share of variance", 0.0, 1.0),
        series=[show.Series("explained", points)],
    )
