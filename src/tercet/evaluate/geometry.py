"""The suite `geometry`: how vectors lie: alignment, uniformity, anisotropy, spectrum, a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tercet.data.examples import read_examples
from tercet.data.files import MissingFileError
from tercet.data.senteval import GradedPairs, StsSet, read_sts
from tercet.evaluate.corpus import Corpus
from tercet.evaluate.results import Missing, rounded
from tercet.evaluate.word_order import spread

ALIKE = 4.0
"""Pairs graded above it should lie close, as in SimCSE."""
MAPPED = 1_000
BLOCK = 1_024
STS_B: StsSet = "STS-B"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Singular values of the centred vectors.

    shares: of each, its square's share of all squares, falling
    effective_rank: exp of the entropy of their shares, unsquared (Roy and Vetterli, 2007)
    """

    shares: Floats
    effective_rank: float | None


@dataclass(frozen=True, slots=True)
class SentenceMap:
    """Sentences of the tasks' dev data on a plane: their two principal components.

    points: [n, 2]
    texts: not part of the JSON
    groups: the task of each; STS-B where the model has none
    explained: the share of the variance that each component holds
    """

    points: Floats
    texts: list[str]
    groups: list[str]
    explained: list[float]


@dataclass(frozen=True, slots=True)
class GeometryResult:
    """Figures of vectors of length 1; None where they are undefined or STS-B is missing.

    alignment: mean squared distance of pairs graded above 4
    uniformity: log of the mean of exp(-2 d^2) over all pairs of sentences
    anisotropy: mean cosine of all pairs of sentences
    sentences: how many different ones these are measured on
    """

    alignment: float | None
    uniformity: float | None
    anisotropy: float | None
    sentences: int
    spectrum: Spectrum | None
    map: SentenceMap | None
    missing: list[Missing]

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


def evaluate_geometry(corpus: Corpus, data_dir: Path) -> GeometryResult:
    """Measure on the sentences of STS-B's test, and map dev sentences of the model's tasks."""
    missing: list[Missing] = []
    pairs = None
    try:
        pairs = read_sts(STS_B, data_dir)
    except MissingFileError as error:
        missing.append(Missing("geometry", STS_B, error.file))
    plane = _map_sentences(corpus, data_dir, pairs, missing)
    if pairs is None:
        return GeometryResult(None, None, None, 0, None, plane, missing)
    sentences = list(dict.fromkeys([*pairs.first, *pairs.second]))
    vectors = corpus.embed(sentences).astype(np.float64)
    return GeometryResult(
        alignment=_alignment_of(corpus, pairs),
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
    # Each vector met itself once, at distance 0.
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
    """How the spread of vectors [n, width] is shared out among directions."""
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)
    squares = values**2
    if not squares.sum() > 0.0:
        return Spectrum(np.zeros_like(values), None)
    shares = values / values.sum()
    used = shares[shares > 0.0]
    return Spectrum(squares / squares.sum(), float(np.exp(-(used * np.log(used)).sum())))


def project(vectors: Floats) -> tuple[Floats, list[float]]:
    """The two principal components of vectors [n, width], [n, 2], and their shares of variance.

    Of each axis the direction is such that its greatest weight is positive.
    """
    _, values, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    axes = directions[:2]
    heaviest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(len(axes)), heaviest])[:, None]
    total = float((values**2).sum()) or 1.0
    points: Floats = (vectors - vectors.mean(axis=0)) @ axes.T
    return points, [float(value**2) / total for value in values[:2]]


def _alignment_of(corpus: Corpus, pairs: GradedPairs) -> float | None:
    alike = np.flatnonzero(pairs.grades > ALIKE)
    sides = [[side[row] for row in alike] for side in (pairs.first, pairs.second)]
    first, second = (corpus.embed(side).astype(np.float64) for side in sides)
    return alignment(first, second)


def _map_sentences(
    corpus: Corpus, data_dir: Path, pairs: GradedPairs | None, missing: list[Missing]
) -> SentenceMap | None:
    columns: dict[str, Sequence[str]] = {}
    for name, spec in corpus.model.tasks.items():
        try:
            columns[name] = read_examples(spec, "dev", data_dir).texts[0]
        except MissingFileError as error:
            missing.append(Missing("geometry", name, error.file))
    if not columns and pairs is not None:
        columns[STS_B] = pairs.first
    chosen = {
        (text, name): None
        for name, texts in columns.items()
        for text in _some(texts, MAPPED // len(columns))
    }
    if len(chosen) < 3:
        return None
    texts, groups = [text for text, _ in chosen], [group for _, group in chosen]
    points, explained = project(corpus.embed(texts).astype(np.float64))
    return SentenceMap(points, texts, groups, explained)


def _some(texts: Sequence[str], count: int) -> list[str]:
    return [texts[place] for place in spread(len(texts), count).tolist()]
