"""A task: its data, its labels, and a head and an objective for each mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from tercet.specs.base import Count, Interval, Metric, Mode, Positive, Share, Spec
from tercet.specs.data import DataSpec, SubsetSpec
from tercet.specs.depths import DepthsSpec
from tercet.specs.heads import HEADS, Head, SharedSpec
from tercet.specs.objectives import Objective, PredictiveSpec
from tercet.specs.parts import LabelSpace
from tercet.specs.predictions import Floats
from tercet.specs.scaling import Scaling
from tercet.specs.teacher import WHOLE, TeacherSpec

_MODES: tuple[Mode, ...] = ("cross", "bi", "single")
_SIMPLEST: dict[str, list[str] | tuple[float, float]] = {"labels": ["0", "1"], "range": (0.0, 1.0)}


class ModeSpec(Spec):
    shared: SharedSpec | None = None
    """Layers that come first in this head and in every other that names them. Example: `{ name =
    "pairs", hidden = [256] }`."""
    head: Head | None = None
    """Only for objectives that need one. Example: `{ kind = "mlp", hidden = [256] }`."""
    dropout: Share = 0.0
    """Of the vectors that the head reads, before shared layers and features of two vectors.
    Example: `0.3`."""
    objective: Objective
    """The loss, and how outputs become predictions. Example: `{ kind = "cross-entropy" }`."""
    weight: Positive = 1.0
    """Factor on this mode's loss. Example: `0.5`."""
    scaling: Scaling | None = None
    """How outputs are scaled before they become probabilities; default: fitted on the task's
    `held_out` rows, if it has any. Example: `{ temperature = 1.4 }`."""
    thresholds: list[Annotated[float, Field(ge=0.0, le=1.0)]] | None = None
    """With `multi_label`: the least probability at which each label is predicted; default: chosen
    on the task's `held_out` rows, or one half. Example: `[0.4, 0.6, 0.5]`."""
    r_drop: Annotated[float, Field(ge=0.0)] = 0.0
    """R-Drop: rows are encoded twice, under different dropout, and the distance between the two
    predictions is added to the loss with this factor. Example: `1.0`."""

    @property
    def predicts(self) -> bool:
        """Whether it has a head that predicts labels."""
        return self.objective.predicts

    @property
    def prediction(self) -> PredictiveSpec:
        """The objective of a mode that predicts."""
        assert isinstance(self.objective, PredictiveSpec)
        return self.objective

    @property
    def narrows(self) -> bool:
        """Whether its loss can be computed from the first numbers of vectors alone."""
        return self.objective.contrastive or (self.head is not None and self.head.narrows)

    @property
    def reads_vectors(self) -> bool:
        """Whether its head reads nothing but vectors that may have been stored, one per text or
        jointly encoded pair; other heads need the tokens."""
        return self.head is not None and self.head.reads == "vectors"

    def with_hidden(self, hidden: list[int]) -> Self:
        """The same with hidden layers of other widths, where its head or shared layers have any."""
        head = self.head and self.head.with_hidden(hidden)
        shared = self.shared and self.shared.model_copy(update={"hidden": hidden})
        return self.model_copy(update={"head": head, "shared": shared})

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        kind = self.objective.kind
        if not self.predicts and self.head is not None:
            raise ValueError(f"objective `{kind}` takes no `head`")
        if self.predicts and self.head is None:
            raise ValueError(f"objective `{kind}` needs a `head`")
        if not self.predicts and self.r_drop > 0.0:
            raise ValueError(f"`r_drop` compares predictions, and objective `{kind}` has none")
        if self.shared is not None and (self.head is None or not self.head.takes_shared):
            fitting = ", ".join(f"`{name}`" for name in HEADS if HEADS[name].takes_shared)
            raise ValueError(f"`shared` layers fit heads of kind {fitting} only")
        if self.dropout > 0.0 and (self.head is None or self.head.reads == "hidden-states"):
            raise ValueError("`dropout` of a mode needs a head that reads vectors")
        return self


class SideSpec(Spec):
    """Low-rank weights (LoRA) that a task adds to the encoder's projections. Only its own texts are
    encoded with them, in a pass of their own."""

    rank: Count = 8
    """Width of the two matrices whose product is added to each projection. Example: `16`."""
    layers: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None
    """Numbers of the layers that get them, from 0; default: all. Example: `[4, 5]`."""

    @field_validator("layers")
    @classmethod
    def _named_once(cls, layers: list[int] | None) -> list[int] | None:
        if layers is not None and len(set(layers)) < len(layers):
            raise ValueError(f"{layers} names a layer twice")
        return layers


class TaskSpec(Spec):
    data: DataSpec
    """Its files, and how they are read. Example: `{ train = "tickets.csv", dev = 0.15, texts =
    "text", label = "team" }`."""
    like: str | None = None
    """Another task, whose heads this one trains on further data; labels, range and modes default to
    that task's, and it is scored on dev through that task. Example: `"paraphrase"`."""
    teacher: TeacherSpec | None = None
    """A trained model whose outputs this task learns from, in addition to labels or instead.
    Example: `{ folder = "runs/teacher", weight = 0.7 }`."""
    held_out: Share = 0.0
    """Share of the training rows that calibration is fitted on instead. Tasks that are like this
    one leave out rows that contain these. Example: `0.1`."""
    labels: Annotated[list[str], Field(min_length=2)] | None = None
    """Names of the classes, in the order of their numbers from 0; default: found in the training
    files. Example: `["Billing", "Delivery", "Returns"]`."""
    multi_label: bool = False
    """Whether a row may have any number of the `labels`, none included. Example: `true`."""
    class_weights: Literal["balanced"] | Annotated[list[Positive], Field(min_length=2)] | None = (
        None
    )
    """Weights of the classes in the loss, in their order; `balanced`: rows / (classes * rows of the
    class). With `multi_label`: weights of the rows that have a label; `balanced`: rows without it
    over rows with it. Default: all 1. Example: `"balanced"`."""
    range: Interval | None = None
    """Lowest and highest label of a graded task; default: found in the training files. Example:
    `[0, 5]`."""
    prior: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """For two classes: the frequency of the second where the model will be used. Training corrects
    for the difference to the training rows. Default: its frequency in the training rows. Example:
    `0.1`."""
    metric: Metric | None = None
    """The metric that represents this task; default: accuracy for classes, micro-f1 for several
    labels per row, pearson for grades. Example: `"macro-f1"`."""
    subset: SubsetSpec | None = None
    """A random part of the training rows for each pass; default: all of them. Example: `{ share =
    0.25 }`."""
    batch: Count | None = None
    """Rows per batch; default: the stage's. Example: `16`."""
    chunk: Count | None = None
    """GradCache, for contrastive tasks: rows that are encoded together, fewer than a batch, so that
    memory grows with this number and not with the batch. Example: `32`."""
    max_tokens: Annotated[int, Field(ge=4)] | None = None
    """Tokens after which its rows are truncated in training; default: `encoder.max_tokens`.
    Example: `64`."""
    weight: Positive = 1.0
    """Factor on this task's loss. Example: `2.0`."""
    side: SideSpec | None = None
    """Side weights of its own, which train even where the encoder is frozen; default: none.
    Example: `{ rank = 8 }`."""
    single: ModeSpec | None = None
    """The head on one sentence. Example: `{ head = { kind = "mlp" }, objective = { kind =
    "cross-entropy" } }`."""
    bi: ModeSpec | None = None
    """The head on the vectors of two sentences encoded separately. Example: `{ head = { kind =
    "cosine" }, objective = { kind = "mean-squared-error" } }`."""
    cross: ModeSpec | None = None
    """The head on two sentences encoded jointly. Example: `{ head = { kind = "mlp" }, objective = {
    kind = "binary-cross-entropy" } }`."""

    @property
    def modes(self) -> dict[Mode, ModeSpec]:
        """The modes of this task, the most accurate first."""
        return {mode: spec for mode in _MODES if (spec := getattr(self, mode)) is not None}

    @property
    def label_space(self) -> LabelSpace:
        classes = None if self.labels is None else len(self.labels)
        return LabelSpace(classes=classes, range=self.range, multi_label=self.multi_label)

    @property
    def lacks(self) -> Literal["labels", "range"] | None:
        """The key that the recipe leaves to be found in the training files, if any."""
        if self.labels is not None or self.range is not None or not self.learns_labels:
            return None
        needed = (spec.objective.needs for spec in self.modes.values())
        return next(filter(None, needed), None)

    @property
    def predicts(self) -> bool:
        """Whether it has a head that predicts labels; contrastive tasks have none."""
        return any(spec.predicts for spec in self.modes.values())

    @property
    def answers(self) -> bool:
        """Whether it has heads of its own that predict."""
        return self.predicts and self.like is None

    @property
    def learns_labels(self) -> bool:
        """Whether training reads labels; a teacher with all the weight replaces them."""
        taught = self.teacher is not None and self.teacher.weight == WHOLE
        return any(spec.objective.reads_labels for spec in self.modes.values()) and not taught

    @property
    def predicting_modes(self) -> dict[Mode, ModeSpec]:
        """The modes that have a head, the most accurate first."""
        return {mode: spec for mode, spec in self.modes.items() if spec.predicts}

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What predictions of this task are measured by; the first is the default."""
        labels = self._presumed().label_space
        for spec in self.predicting_modes.values():
            return spec.prediction.metrics(labels)
        return labels.metrics

    def outputs(self, mode: Mode) -> int:
        """Numbers per row that the head of a mode gives."""
        return self.modes[mode].prediction.outputs(self.label_space)

    def predict(self, mode: Mode, outputs: Floats) -> Floats:
        """outputs [n, outputs] -> probabilities [n, classes] or of class 1 [n], or grades [n]

        With `multi_label` the probabilities [n, classes] are independent.
        """
        return self.modes[mode].prediction.predict(outputs, self.label_space)

    @property
    def chosen_metric(self) -> Metric:
        return self.metric or self.metrics[0]

    def with_fitting_objectives(self) -> Self:
        """The same with the defaults of each objective that its head asks for.

        Raises a ValueError where a head cannot reach what its objective is to learn.
        """
        fitting: dict[str, ModeSpec] = {}
        for mode, spec in self.predicting_modes.items():
            assert spec.head is not None  # since it predicts
            try:
                objective = spec.prediction.within(spec.head.bounds, self.label_space)
            except ValueError as error:
                raise ValueError(f"mode `{mode}`: {error}") from error
            if objective is not spec.objective:
                fitting[mode] = spec.model_copy(update={"objective": objective})
        return self.model_copy(update=fitting) if fitting else self

    def with_hidden(self, hidden: list[int]) -> Self:
        """The same with hidden layers of other widths in heads and shared layers that have any."""
        return self.model_copy(
            update={mode: spec.with_hidden(hidden) for mode, spec in self.modes.items()}
        )

    def without_places(self) -> Self:
        """The same without the paths of teachers, for folders that are shared."""
        if self.teacher is None:
            return self
        return self.model_copy(update={"teacher": self.teacher.without_places()})

    def _presumed(self) -> Self:
        """The same with the simplest labels where those of the data are not known yet."""
        key = self.lacks
        return self if key is None else self.model_copy(update={key: _SIMPLEST[key]})

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        self._presumed()._check()
        return self

    def _check(self) -> None:
        """Raise a ValueError unless all keys fit together."""
        if not self.modes and self.like is not None:
            raise ValueError(f"is like `{self.like}`, but no task of that name has modes")
        if not self.modes:
            raise ValueError("needs a mode: `single`, `bi` or `cross`")
        if self.labels is not None and self.range is not None:
            raise ValueError("has `labels` (classes) or `range` (grades), not both")
        if self.labels is not None and len(set(self.labels)) < len(self.labels):
            raise ValueError("`labels` names a class twice")
        if self.multi_label and self.labels is None:
            raise ValueError("`multi_label` needs `labels`, the names of the labels")
        if self.prior is not None and (self.labels is None or len(self.labels) != 2):
            raise ValueError("`prior` needs exactly two `labels`")
        if self.prior is not None and self.multi_label:
            raise ValueError("`prior` needs one of two classes per row, without `multi_label`")
        drawn_by = None if self.subset is None else self.subset.drawn_by
        if self.prior is not None and drawn_by is not None:
            raise ValueError(f"`prior` and `{drawn_by}` both say how often classes come")
        if drawn_by is not None and self.labels is None:
            raise ValueError(f"`{drawn_by}` needs `labels`, the names of the classes")
        if drawn_by is not None and self.multi_label:
            raise ValueError(f"`{drawn_by}` needs one class per row, without `multi_label`")
        _check_class_weights(self)
        contrastive = [spec.objective.contrastive for spec in self.modes.values()]
        if self.chunk is not None and contrastive != [True]:
            raise ValueError("`chunk` needs one mode whose objective compares vectors")
        _check_sources(self)
        if self.side is not None and not self.predicts:
            raise ValueError("`side` needs a head that predicts: other tasks read plain vectors")
        for mode, spec in self.modes.items():
            _check_mode(self, mode, spec)
        if self.chosen_metric not in self.metrics:
            fitting = ", ".join(self.metrics)
            raise ValueError(f"`metric` {self.metric!r} does not fit; use one of {fitting}")


def tasks_at_depth(tasks: Mapping[str, TaskSpec], hidden: list[int] | None) -> dict[str, TaskSpec]:
    """The tasks as a lesser depth has them: with heads of its own.

    hidden: widths of their hidden layers; None: the same as at the full depth
    """
    own = {
        name: task
        for name, task in tasks.items()
        if all(spec.objective.at_lesser_depths for spec in task.modes.values())
    }
    return own if hidden is None else {name: task.with_hidden(hidden) for name, task in own.items()}


def tasks_by_depth(
    spec: DepthsSpec | None, tasks: Mapping[str, TaskSpec], *, full: int
) -> dict[int, dict[str, TaskSpec]]:
    """The tasks of each depth that a recipe adds to the full one of so many layers."""
    if spec is None:
        return {}
    own = tasks_at_depth(tasks, spec.hidden)
    return {depth: own for depth in spec.layers if depth < full}


def side_of(tasks: Mapping[str, TaskSpec], task: str) -> str | None:
    """The task whose side weights encode a task's texts: its own, or of the task it is like."""
    owner = tasks[task].like or task
    return owner if tasks[owner].side is not None else None


def _check_mode(task: TaskSpec, mode: Mode, spec: ModeSpec) -> None:
    objective, head = spec.objective, spec.head
    kind = objective.kind
    if mode not in objective.modes:
        fitting = " or ".join(f"`{name}`" for name in objective.modes)
        raise ValueError(f"objective `{kind}` compares separate vectors: use mode {fitting}")
    making = sum(spec.objective.makes_labels for spec in task.modes.values())
    if objective.makes_labels and (task.predicts or making > 1):
        raise ValueError(f"objective `{kind}` must be the only one of a task without labels")
    if objective.needs_teacher and task.teacher is None:
        raise ValueError(f"objective `{kind}` needs a `teacher`")
    has_classes = task.labels is not None and not task.multi_label
    if objective.reads_labels and not objective.predicts and not has_classes:
        raise ValueError(f"objective `{kind}` needs `labels`, one class per row")
    _check_decisions(task, mode, spec)
    if not isinstance(objective, PredictiveSpec) or head is None:
        return
    labels = task.label_space
    objective.check(labels)
    if labels.multi_label and not objective.takes_multi_label:
        raise ValueError(
            f"objective `{kind}` learns one class per row: use `binary-cross-entropy` with "
            "`multi_label`"
        )
    if task.class_weights is not None and not objective.takes_class_weights:
        raise ValueError(f"`class_weights` do not fit objective `{kind}`, which does not use them")
    if task.prior is not None and not objective.takes_prior:
        raise ValueError(f"`prior` needs objective `binary-cross-entropy`, not `{kind}`")
    if mode not in head.modes:
        fitting = " or ".join(f"`{name}`" for name in HEADS if mode in HEADS[name].modes)
        raise ValueError(f"mode `{mode}` needs a head of kind {fitting}, not `{head.kind}`")
    if head.only_output and objective.outputs(labels) > 1:
        raise ValueError(f"a `{head.kind}` head gives one number and cannot feed `{kind}`")
    if head.keeps_exemplars and labels.multi_label:
        raise ValueError(f"a head of kind `{head.kind}` needs one class per row")
    if head.keeps_exemplars and task.side is not None:
        raise ValueError(
            f"a head of kind `{head.kind}` keeps vectors of training sentences, which `side` "
            "weights would change in training"
        )
    if head.keeps_exemplars and objective.outputs(labels) != labels.classes:
        raise ValueError(f"a head of kind `{head.kind}` needs objective `cross-entropy`")


def _check_class_weights(task: TaskSpec) -> None:
    weights = task.class_weights
    if weights is None:
        return
    if task.labels is None:
        raise ValueError("`class_weights` need `labels`, the names of the classes")
    if isinstance(weights, list) and len(weights) != len(task.labels):
        raise ValueError(f"`class_weights` has {len(weights)} for {len(task.labels)} `labels`")
    if task.prior is not None:
        raise ValueError("`prior` and `class_weights` both say how much classes count")
    if task.subset is not None and (drawn_by := task.subset.drawn_by) is not None:
        raise ValueError(f"`{drawn_by}` and `class_weights` both say how much classes count")
    if task.predicts and not task.learns_labels:
        raise ValueError("`class_weights` weigh labels, and the teacher gives all of them")


def _check_decisions(task: TaskSpec, mode: Mode, spec: ModeSpec) -> None:
    """Raise unless `scaling` and `thresholds` fit what the mode predicts."""
    if spec.scaling is not None and (not spec.predicts or task.labels is None):
        raise ValueError(f"`{mode}.scaling` needs a mode that predicts classes")
    if spec.thresholds is None:
        return
    if not spec.predicts or not task.multi_label:
        raise ValueError(f"`{mode}.thresholds` needs `multi_label = true`")
    if len(spec.thresholds) != len(task.labels or ()):
        raise ValueError(
            f"`{mode}.thresholds` has {len(spec.thresholds)} numbers for "
            f"{len(task.labels or ())} labels"
        )


def _check_negatives(task: TaskSpec) -> None:
    if task.data.negatives is None:
        return
    if not task.learns_labels or task.labels is None or len(task.labels) != 2 or task.multi_label:
        raise ValueError("`data.negatives` are of class 0 of two: they need a task with two labels")
    if task.held_out > 0.0 or task.data.pairs is not None or "single" in task.modes:
        raise ValueError("`data.negatives` need pairs from files, without `held_out` or `pairs`")


def _check_sources(task: TaskSpec) -> None:
    """A task needs something to learn from: labels, a teacher, or both."""
    taught = task.predicts or any(spec.objective.needs_teacher for spec in task.modes.values())
    if task.teacher is not None and not taught:
        raise ValueError("`teacher` needs a head to teach, or objective `teacher-vectors`")
    for key in ("pairs", "changes"):
        made = getattr(task.data, key) is not None
        if made and (task.learns_labels or task.teacher is None):
            raise ValueError(
                f"`data.{key}` have no labels: they need a `teacher` with `weight = 1`"
            )
    _check_negatives(task)
    if task.data.sentences and task.learns_labels:
        raise ValueError("`data.sentences` have no labels: they need a `teacher` with `weight = 1`")
    if task.learns_labels:
        return
    if task.subset is not None and (drawn_by := task.subset.drawn_by) is not None:
        raise ValueError(f"`{drawn_by}` needs labels, and the teacher gives all of them")
    if task.held_out > 0.0:
        raise ValueError("`held_out` rows are for calibration, which needs labels")
    if any(spec.head is not None and spec.head.keeps_exemplars for spec in task.modes.values()):
        raise ValueError("a head with exemplars needs labels, and the teacher gives all of them")
