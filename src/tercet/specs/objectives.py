"""Objectives: outputs or vectors, and labels, to a loss; and outputs to predictions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, SerializeAsAny, model_validator

from tercet.specs.base import Interval, Metric, Mode, Positive, Share
from tercet.specs.parts import LabelSpace, Part, declare, of_kind
from tercet.specs.predictions import Floats, sigmoid, softmax, to_grades
from tercet.specs.registry import Registry

OBJECTIVES: Registry[type[ObjectiveSpec]] = Registry("objective")


class ObjectiveSpec(Part):
    """A kind of objective; subclass one of `PredictiveSpec` and `ContrastiveSpec`."""

    registry = OBJECTIVES
    modes: ClassVar[tuple[Mode, ...]] = ("single", "bi", "cross")
    """The modes that it fits."""
    predicts: ClassVar[bool] = False
    """Whether it reads the outputs of a head, and labels."""
    contrastive: ClassVar[bool] = False
    """Whether it compares vectors of a batch with each other."""
    makes_labels: ClassVar[bool] = False
    """Whether it makes its own targets; it is then the only objective of its task."""
    needs_teacher: ClassVar[bool] = False
    needs: ClassVar[Literal["labels", "range"] | None] = None
    """The key of the task without which it cannot learn; training finds it in the data."""
    reads_labels: ClassVar[bool] = False
    """Whether it learns from labels."""
    bi_texts: ClassVar[int] = 2
    """How many text columns it needs in mode `bi`."""
    at_lesser_depths: ClassVar[bool] = True
    """Whether it also trains the depths that a recipe adds to the full one."""


class PredictiveSpec(ObjectiveSpec):
    """Compares the outputs of a head with labels.

    Its implementation is a `tercet.objectives.base.PredictiveObjective`, made with `classes` (how
    many, or None), `label_range` (of grades, or None) and the keys of the recipe.
    """

    predicts = True
    reads_labels = True
    solver: ClassVar[Literal["logistic", "ridge"] | None] = None
    """The regression by which a stage with `solve` fits the last layer of a head."""
    takes_prior: ClassVar[bool] = False
    """Whether the share of two classes in training may differ from the one in use."""
    takes_multi_label: ClassVar[bool] = False
    """Whether it learns any number of labels per row, 0 or 1 each."""
    takes_class_weights: ClassVar[bool] = False
    """Whether its loss weighs classes: its implementation is then a
    `tercet.objectives.base.WeightedObjective`."""

    def check(self, labels: LabelSpace) -> None:
        """Raise a ValueError unless it can learn labels of this kind."""

    def within(self, bounds: Interval | None, labels: LabelSpace) -> Self:
        """This objective with the defaults that suit a head whose numbers have these bounds.

        Raises a ValueError where such a head cannot reach what it is to learn.
        """
        return self

    def outputs(self, labels: LabelSpace) -> int:
        """Numbers per row that the head gives."""
        return 1

    def predict(self, outputs: Floats, labels: LabelSpace) -> Floats:
        """outputs [n, outputs] -> probabilities [n, classes] or of class 1 [n], or grades [n]

        With `labels.multi_label` the probabilities [n, classes] are independent.
        """
        raise NotImplementedError

    def metrics(self, labels: LabelSpace) -> tuple[Metric, ...]:
        """What predictions are measured by; the first is the default."""
        return labels.metrics


class ContrastiveSpec(ObjectiveSpec):
    """Compares vectors of a batch with each other; needs neither head nor labels.

    Its implementation is a `tercet.objectives.base.ContrastiveObjective`, made with the keys of
    the recipe.
    """

    modes = ("single", "bi")
    contrastive = True


Objective = Annotated[SerializeAsAny[ObjectiveSpec], of_kind(OBJECTIVES)]


@declare
class CrossEntropySpec(PredictiveSpec):
    """Cross-entropy over classes, one output per class."""

    takes_class_weights = True
    solver = "logistic"
    implementation = "tercet.objectives.cross_entropy:CrossEntropy"
    kind: Literal["cross-entropy"] = "cross-entropy"
    needs = "labels"
    label_smoothing: Share = 0.0
    """How much of a label is spread evenly over all classes. Example: `0.1`."""
    ordinal: Positive | None = None
    """For ordered classes: a label is spread over its neighbours by exp(-ordinal * squared
    distance). Example: `1.5`."""

    def check(self, labels: LabelSpace) -> None:
        if labels.classes is None:
            raise ValueError(f"objective `{self.kind}` needs `labels`, the names of the classes")

    def outputs(self, labels: LabelSpace) -> int:
        return labels.classes or 0

    def predict(self, outputs: Floats, labels: LabelSpace) -> Floats:
        return softmax(outputs)

    @model_validator(mode="after")
    def _spreads_once(self) -> Self:
        if self.ordinal is not None and self.label_smoothing > 0.0:
            raise ValueError("`ordinal` and `label_smoothing` both spread labels: set one of them")
        return self


@declare
class BinaryCrossEntropySpec(PredictiveSpec):
    """Cross-entropy of two classes with one output, or of several labels with one output each."""

    takes_prior = True
    takes_multi_label = True
    takes_class_weights = True
    solver = "logistic"
    implementation = "tercet.objectives.binary_cross_entropy:BinaryCrossEntropy"
    kind: Literal["binary-cross-entropy"] = "binary-cross-entropy"
    needs = "labels"

    def check(self, labels: LabelSpace) -> None:
        if labels.multi_label and labels.classes is not None:
            return
        if labels.classes != 2:
            raise ValueError(
                f"objective `{self.kind}` needs exactly two `labels`, or `multi_label = true`"
            )

    def outputs(self, labels: LabelSpace) -> int:
        return labels.classes or 0 if labels.multi_label else 1

    def predict(self, outputs: Floats, labels: LabelSpace) -> Floats:
        return sigmoid(outputs if labels.multi_label else outputs[:, 0])


_UNIT: Interval = (0.0, 1.0)


def _contains(bounds: Interval, inner: Interval) -> bool:
    return bounds[0] <= inner[0] and inner[1] <= bounds[1]


class GradedSpec(PredictiveSpec):
    """Grades in the task's range."""

    needs = "range"

    def check(self, labels: LabelSpace) -> None:
        if labels.range is None:
            raise ValueError(f"objective `{self.kind}` needs `range`, the lowest and highest label")


class DistanceSpec(GradedSpec):
    """The distance of one output from the grade."""

    solver = "ridge"

    targets: Interval | None = None
    """The task's label range is scaled to this one; default: not scaled, and [0, 1] for a head such
    as `cosine` that cannot reach the range. Example: `[0, 1]`."""

    def within(self, bounds: Interval | None, labels: LabelSpace) -> Self:
        goal = self.targets or labels.range
        if bounds is None or goal is None or _contains(bounds, goal):
            return self
        if "targets" not in self.model_fields_set:
            targets = _UNIT if _contains(bounds, _UNIT) else bounds
            return self.model_copy(update={"targets": targets})
        low, high = bounds
        key = "range" if self.targets is None else "targets"
        raise ValueError(
            f"the head gives numbers from {low:g} to {high:g} and cannot reach the `{key}` "
            f"{list(goal)}: set `targets` of objective `{self.kind}` within them, such as [0, 1]"
        )

    def predict(self, outputs: Floats, labels: LabelSpace) -> Floats:
        return to_grades(outputs[:, 0], labels=labels.range, targets=self.targets)


@declare
class MeanSquaredErrorSpec(DistanceSpec):
    """The squared distance of one output from the grade."""

    implementation = "tercet.objectives.mean_squared_error:MeanSquaredError"
    kind: Literal["mean-squared-error"] = "mean-squared-error"


@declare
class MeanAbsoluteErrorSpec(DistanceSpec):
    """The absolute distance of one output from the grade."""

    implementation = "tercet.objectives.mean_absolute_error:MeanAbsoluteError"
    kind: Literal["mean-absolute-error"] = "mean-absolute-error"


@declare
class HingeSpec(GradedSpec):
    """Pairs graded above the middle of the range must score above a margin, others below it."""

    implementation = "tercet.objectives.hinge:Hinge"
    kind: Literal["hinge"] = "hinge"
    margin: Positive = 1.0
    """How far from 0, on its side, a pair must score. Example: `0.5`."""

    def predict(self, outputs: Floats, labels: LabelSpace) -> Floats:
        return to_grades(outputs[:, 0], labels=labels.range, targets=(-1.0, 1.0))


@declare
class BinnedCrossEntropySpec(GradedSpec):
    """Cross-entropy over grades sorted into bins; predicts the expected grade."""

    implementation = "tercet.objectives.binned_cross_entropy:BinnedCrossEntropy"
    kind: Literal["binned-cross-entropy"] = "binned-cross-entropy"
    bins: Annotated[int, Field(ge=2)] = 6
    """Number of bins, evenly spaced from the lowest to the highest label. Example: `11`."""

    def outputs(self, labels: LabelSpace) -> int:
        return self.bins

    def predict(self, outputs: Floats, labels: LabelSpace) -> Floats:
        assert labels.range is not None
        return softmax(outputs) @ np.linspace(*labels.range, self.bins, dtype=np.float32)


@declare
class MaskedLanguageModelSpec(ObjectiveSpec):
    """Predicts masked words of unlabelled sentences."""

    makes_labels = True
    at_lesser_depths = False
    implementation = "tercet.objectives.masked_language_model:MaskedLanguageModel"
    kind: Literal["masked-language-model"] = "masked-language-model"
    share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    """Share of the words of a sentence that are masked; at least one is. Example: `0.3`."""


@declare
class TeacherVectorsSpec(ObjectiveSpec):
    """Keeps vectors close to those of a teacher of the same width."""

    modes = ("single", "bi")
    makes_labels = True
    needs_teacher = True
    implementation = "tercet.objectives.teacher_vectors:TeacherVectors"
    kind: Literal["teacher-vectors"] = "teacher-vectors"
    distance: Literal["cosine", "euclidean"] = "cosine"
    """1 - cosine, or the mean square of the differences. Example: `"euclidean"`."""


@declare
class SimCSESpec(ContrastiveSpec):
    """SimCSE: each anchor must find its own positive among all of the batch."""

    bi_texts = 1  # a sentence alone is encoded twice, under different dropout
    implementation = "tercet.objectives.simcse:SimCSE"
    kind: Literal["simcse"] = "simcse"
    temperature: Positive = 0.05
    """Divides the cosines; the lower, the more the hardest negatives count. Example: `0.1`."""


@declare
class MultipleNegativesRankingSpec(ContrastiveSpec):
    """Multiple negatives ranking: SimCSE's loss with a scale."""

    implementation = "tercet.objectives.multiple_negatives_ranking:MultipleNegativesRanking"
    kind: Literal["multiple-negatives-ranking"] = "multiple-negatives-ranking"
    scale: Positive = 20.0
    """Factor on the cosines. Example: `30`."""


@declare
class TripletSpec(ContrastiveSpec):
    """The positive must be nearer to the anchor than the negative, by a margin."""

    bi_texts = 3
    implementation = "tercet.objectives.triplet:Triplet"
    kind: Literal["triplet"] = "triplet"
    margin: Positive = 1.0
    """By how much the positive must be nearer. Example: `0.5`."""
    distance: Literal["euclidean", "cosine"] = "euclidean"
    """How nearness is measured; `cosine`: 1 minus the cosine. Example: `"cosine"`."""


@declare
class SupervisedContrastiveSpec(ObjectiveSpec):
    """Sentences of one class must be nearer to each other than to those of other classes."""

    modes = ("single",)
    reads_labels = True
    needs = "labels"
    implementation = "tercet.objectives.supervised_contrastive:SupervisedContrastive"
    kind: Literal["supervised-contrastive"] = "supervised-contrastive"
    form: Literal["softmax", "squared"] = "softmax"
    """softmax: SupCon, over all of the batch; squared: cosines are drawn to 1 within a class and to
    0 between classes, which suits a few rows per class. Example: `"squared"`."""
    temperature: Positive = 0.1
    """Temperature of the softmax. Example: `0.05`."""
