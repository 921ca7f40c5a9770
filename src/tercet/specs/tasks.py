"""A task: its data, its labels, and a head and an objective for each mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tercet.specs.base import Count, Interval, Metric, Mode, Positive, Share, Spec
from tercet.specs.data import DataSpec, SubsetSpec
from tercet.specs.depths import DepthsSpec
from tercet.specs.modes import ModeSpec
from tercet.specs.parts import LabelSpace
from tercet.specs.predictions import Floats
from tercet.specs.side import SideSpec
from tercet.specs.task_checks import check_task
from tercet.specs.teacher import WHOLE, TeacherSpec

_MODES: tuple[Mode, ...] = ("cross", "bi", "single")
_SIMPLEST: dict[str, list[str] | tuple[float, float]] = {"labels": ["0", "1"], "range": (0.0, 1.0)}


class TaskSpec(Spec):
    data: DataSpec
    """Its files, and how they are read. Example: `{ train = "tickets.csv", dev = 0.15, texts =
    "text", label = "team" }`."""
    like: str | None = None
    """Another task, whose heads this one trains on further data; labels, range and modes default to
    that task's, and it is scored on dev through that task. With a mode of its own it trains only
    that one. Example: `"paraphrase"`."""
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
        check_task(self._presumed())
        return self


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
