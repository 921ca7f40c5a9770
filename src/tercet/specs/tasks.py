"""A task: its data, its labels, and a head and an objective for each mode."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from tercet.specs.base import Count, Interval, Metric, Mode, Positive, Share, Spec
from tercet.specs.data import DataSpec, SubsetSpec
from tercet.specs.heads import (
    FITTING,
    SHARING,
    WITH_EXEMPLARS,
    CosineHeadSpec,
    HeadSpec,
    SharedSpec,
)
from tercet.specs.objectives import CONTRASTIVE, UNLABELLED, ObjectiveSpec
from tercet.specs.teacher import WHOLE, TeacherSpec


class ModeSpec(Spec):
    shared: SharedSpec | None = None
    """Layers that stand first in this head and in every other that names them."""
    head: HeadSpec | None = None
    """Left out where the objective needs none."""
    objective: ObjectiveSpec
    weight: Positive = 1.0
    """Factor on this mode's loss."""
    r_drop: Annotated[float, Field(ge=0.0)] = 0.0
    """Rows go through twice, under different dropout, and this is the factor on how far the two
    predictions are apart (R-Drop)."""

    @property
    def predicts(self) -> bool:
        """Whether it has a head that predicts labels."""
        return not isinstance(self.objective, UNLABELLED)

    @property
    def narrows(self) -> bool:
        """Whether its loss can be had from the first numbers of vectors alone."""
        bare = isinstance(self.head, CosineHeadSpec) and not self.head.projection
        return bare or isinstance(self.objective, CONTRASTIVE)

    @property
    def on_vectors(self) -> bool:
        """Whether it only shapes the vectors, from texts without labels."""
        return not self.predicts

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        kind = self.objective.kind
        if not self.predicts and self.head is not None:
            raise ValueError(f"objective `{kind}` takes no `head`")
        if self.predicts and self.head is None:
            raise ValueError(f"objective `{kind}` needs a `head`")
        if not self.predicts and self.r_drop > 0.0:
            raise ValueError(f"`r_drop` compares predictions, and objective `{kind}` has none")
        if self.shared is not None and (self.head is None or self.head.kind not in SHARING):
            fitting = ", ".join(f"`{name}`" for name in SHARING)
            raise ValueError(f"`shared` layers stand in heads of kind {fitting} only")
        return self


class TaskSpec(Spec):
    data: DataSpec
    like: str | None = None
    """Another task, whose heads this one trains on further data; labels, range and modes are that
    one's, and so is the score on dev."""
    teacher: TeacherSpec | None = None
    """A trained model whose outputs this task learns from, beside its labels or instead."""
    held_out: Share = 0.0
    """Share of the training rows that are left out; scalings are fitted on them in the end.
    Tasks that are like this one leave out what tells of these rows."""
    labels: Annotated[list[str], Field(min_length=2)] | None = None
    """Names of the classes, in the order of their numbers from 0."""
    range: Interval | None = None
    """Lowest and highest label of a graded task."""
    prior: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Of two classes, how often the second comes where the model will be used; training then allows
    for its share of the training rows. Taken to be that share when left out."""
    metric: Metric | None = None
    """The figure that stands for this task: accuracy of classes, pearson of grades."""
    subset: SubsetSpec | None = None
    """A random part of the training rows for each pass; all of them when left out."""
    batch: Count | None = None
    """Rows a batch, where it differs from the stage's."""
    chunk: Count | None = None
    """Of a contrastive task: rows that are encoded at once, where a batch has more; memory then
    grows with this and not with the batch (GradCache)."""
    max_tokens: Annotated[int, Field(ge=4)] | None = None
    """Where its rows are cut while training, if earlier than `encoder.max_tokens` says."""
    weight: Positive = 1.0
    """Factor on this task's loss."""
    single: ModeSpec | None = None
    """The head on one sentence."""
    bi: ModeSpec | None = None
    """The head on two vectors, each encoded by itself."""
    cross: ModeSpec | None = None
    """The head on two sentences encoded jointly."""

    @property
    def modes(self) -> dict[Mode, ModeSpec]:
        """The modes that this task has, the most exact first."""
        found: dict[Mode, ModeSpec | None] = {
            "cross": self.cross,
            "bi": self.bi,
            "single": self.single,
        }
        return {mode: spec for mode, spec in found.items() if spec is not None}

    @property
    def predicts(self) -> bool:
        """Whether it has labels to predict; contrastive tasks do not."""
        return any(spec.predicts for spec in self.modes.values())

    @property
    def answers(self) -> bool:
        """Whether it has heads of its own that predict."""
        return self.predicts and self.like is None

    @property
    def learns_labels(self) -> bool:
        """Whether training reads labels; a teacher's are not read but made."""
        taught = self.teacher is not None and self.teacher.weight == WHOLE
        return self.predicts and not taught

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What predictions of this task are measured by; the first stands for it by default."""
        if self.labels is None:
            return ("pearson", "spearman")
        return ("accuracy", "macro-f1", "f1") if len(self.labels) == 2 else ("accuracy", "macro-f1")

    @property
    def chosen_metric(self) -> Metric:
        return self.metric or self.metrics[0]

    def without_places(self) -> Self:
        """The same without the teachers' folders, to be shared with others."""
        if self.teacher is None:
            return self
        return self.model_copy(update={"teacher": self.teacher.without_places()})

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if not self.modes and self.like is not None:
            raise ValueError(f"is like `{self.like}`, but no task of that name has modes")
        if not self.modes:
            raise ValueError("needs a mode: `single`, `bi` or `cross`")
        if self.labels is not None and self.range is not None:
            raise ValueError("has `labels` (classes) or `range` (grades), not both")
        if self.labels is not None and len(set(self.labels)) < len(self.labels):
            raise ValueError("`labels` names a class twice")
        if self.prior is not None and (self.labels is None or len(self.labels) != 2):
            raise ValueError("`prior` needs exactly two `labels`")
        if self.prior is not None and self.subset is not None and self.subset.balanced:
            raise ValueError("`prior` and `subset.balanced` both say how often classes come")
        if self.subset is not None and self.subset.balanced and self.labels is None:
            raise ValueError("`subset.balanced` needs `labels`, the names of the classes")
        contrastive = [isinstance(spec.objective, CONTRASTIVE) for spec in self.modes.values()]
        if self.chunk is not None and contrastive != [True]:
            raise ValueError("`chunk` needs one mode whose objective compares vectors")
        _check_sources(self)
        for mode, spec in self.modes.items():
            _check_mode(self, mode, spec)
        if self.chosen_metric not in self.metrics:
            fitting = ", ".join(self.metrics)
            raise ValueError(f"`metric` {self.metric!r} does not fit; use one of {fitting}")
        return self


def _check_mode(task: TaskSpec, mode: Mode, spec: ModeSpec) -> None:
    kind = spec.objective.kind
    if isinstance(spec.objective, CONTRASTIVE) and mode == "cross":
        raise ValueError(f"objective `{kind}` compares separate vectors: use mode `bi`")
    if kind == "cross-entropy" and task.labels is None:
        raise ValueError(f"objective `{kind}` needs `labels`, the names of the classes")
    if kind == "binary-cross-entropy" and (task.labels is None or len(task.labels) != 2):
        raise ValueError(f"objective `{kind}` needs exactly two `labels`")
    if task.prior is not None and kind == "cross-entropy":
        raise ValueError(f"`prior` needs objective `binary-cross-entropy`, not `{kind}`")
    if kind in _ON_GRADES and task.range is None:
        raise ValueError(f"objective `{kind}` needs `range`, the lowest and highest label")
    if kind in _WITH_OWN_LABELS and (task.predicts or _count(task, _WITH_OWN_LABELS) > 1):
        raise ValueError(f"objective `{kind}` stands in one mode of a task without labels")
    if kind == "teacher-vectors" and (task.teacher is None or mode == "cross"):
        raise ValueError(f"objective `{kind}` needs a `teacher`, and mode `single` or `bi`")
    if spec.head is not None and spec.head.kind not in FITTING[mode]:
        fitting = " or ".join(f"`{name}`" for name in FITTING[mode])
        raise ValueError(f"mode `{mode}` needs a head of kind {fitting}, not `{spec.head.kind}`")
    if isinstance(spec.head, CosineHeadSpec) and kind in ("cross-entropy", "binned-cross-entropy"):
        raise ValueError(f"a `cosine` head gives one number and cannot feed `{kind}`")
    if isinstance(spec.head, WITH_EXEMPLARS) and kind != "cross-entropy":
        raise ValueError(f"a head of kind `{spec.head.kind}` needs objective `cross-entropy`")


_ON_GRADES = ("mean-squared-error", "mean-absolute-error", "hinge", "binned-cross-entropy")


_WITH_OWN_LABELS = ("masked-language-model", "teacher-vectors")
"""Objectives that make what they are compared with themselves."""


def _count(task: TaskSpec, kinds: tuple[str, ...]) -> int:
    return sum(spec.objective.kind in kinds for spec in task.modes.values())


def _check_sources(task: TaskSpec) -> None:
    """What a task learns from must be there: labels, a teacher, or both."""
    keeps = any(spec.objective.kind == "teacher-vectors" for spec in task.modes.values())
    if task.teacher is not None and not task.predicts and not keeps:
        raise ValueError("`teacher` needs a head to teach, or objective `teacher-vectors`")
    if task.data.pairs is not None and (task.learns_labels or task.teacher is None):
        raise ValueError("`data.pairs` have no labels: they need a `teacher` with `weight = 1`")
    if task.data.sentences and task.learns_labels:
        raise ValueError("`data.sentences` have no labels: they need a `teacher` with `weight = 1`")
    if task.learns_labels:
        return
    if task.subset is not None and task.subset.balanced:
        raise ValueError("`subset.balanced` needs labels, and the teacher gives all of them")
    if task.held_out > 0.0:
        raise ValueError("`held_out` rows are for calibration, which needs labels")
    if any(isinstance(spec.head, WITH_EXEMPLARS) for spec in task.modes.values()):
        raise ValueError("a head with exemplars needs labels, and the teacher gives all of them")
