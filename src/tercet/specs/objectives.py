"""Objectives: predictions or vectors, and labels, to a loss."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tercet.specs.base import Interval, Positive, Share, Spec


class CrossEntropySpec(Spec):
    kind: Literal["cross-entropy"] = "cross-entropy"
    label_smoothing: Share = 0.0
    """How much of a label is spread over all classes alike."""
    ordinal: Positive | None = None
    """Classes stand in an order, and a label is spread over its neighbours: by exp(-ordinal *
    squared distance)."""

    @model_validator(mode="after")
    def _spreads_once(self) -> Self:
        if self.ordinal is not None and self.label_smoothing > 0.0:
            raise ValueError("`ordinal` and `label_smoothing` both spread labels: set one of them")
        return self


class BinaryCrossEntropySpec(Spec):
    kind: Literal["binary-cross-entropy"] = "binary-cross-entropy"


class MeanSquaredErrorSpec(Spec):
    kind: Literal["mean-squared-error"] = "mean-squared-error"
    targets: Interval | None = None
    """The task's label range is scaled onto this one; unscaled when left open."""


class MeanAbsoluteErrorSpec(Spec):
    kind: Literal["mean-absolute-error"] = "mean-absolute-error"
    targets: Interval | None = None


class HingeSpec(Spec):
    kind: Literal["hinge"] = "hinge"
    margin: Positive = 1.0
    """How far on its side of 0 a pair must score."""


class BinnedCrossEntropySpec(Spec):
    kind: Literal["binned-cross-entropy"] = "binned-cross-entropy"
    bins: Annotated[int, Field(ge=2)] = 6
    """At equal distances from the lowest to the highest label."""


class MaskedLanguageModelSpec(Spec):
    kind: Literal["masked-language-model"] = "masked-language-model"
    share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    """Of the words of a sentence, how many are masked; at least one is."""


class TeacherVectorsSpec(Spec):
    kind: Literal["teacher-vectors"] = "teacher-vectors"
    distance: Literal["cosine", "euclidean"] = "cosine"
    """1 - cosine, or the mean square of the differences."""


class SimCSESpec(Spec):
    kind: Literal["simcse"] = "simcse"
    temperature: Positive = 0.05


class MultipleNegativesRankingSpec(Spec):
    kind: Literal["multiple-negatives-ranking"] = "multiple-negatives-ranking"
    scale: Positive = 20.0


class TripletSpec(Spec):
    kind: Literal["triplet"] = "triplet"
    margin: Positive = 1.0
    distance: Literal["euclidean", "cosine"] = "euclidean"


ObjectiveSpec = Annotated[
    CrossEntropySpec
    | BinaryCrossEntropySpec
    | MeanSquaredErrorSpec
    | MeanAbsoluteErrorSpec
    | HingeSpec
    | BinnedCrossEntropySpec
    | MaskedLanguageModelSpec
    | TeacherVectorsSpec
    | SimCSESpec
    | MultipleNegativesRankingSpec
    | TripletSpec,
    Field(discriminator="kind"),
]
CONTRASTIVE = (SimCSESpec, MultipleNegativesRankingSpec, TripletSpec)
"""Objectives that compare vectors."""
UNLABELLED = (*CONTRASTIVE, MaskedLanguageModelSpec, TeacherVectorsSpec)
"""Objectives that need neither labels nor a head of the recipe's."""
