"""The typed blocks of a recipe: encoder, data, heads, objectives, tasks, stages, evaluation.

Every key has a type and either a value in the recipe or the default that stands here.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

Gear = Literal["single", "bi", "cross"]
PoolingName = Literal["cls", "pooler", "mean", "max"]
Feature = Literal["u", "v", "absdiff", "product", "cosine"]
Activation = Literal["relu", "tanh", "gelu"]
Metric = Literal["accuracy", "f1", "macro-f1", "pearson", "spearman"]
Surgery = Literal[
    "pcgrad", "gradvac", "upgrad", "cagrad", "mgda", "aligned-mtl", "imtl-g", "dualproj"
]
Column = Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


def _rises(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] >= bounds[1]:
        raise ValueError(f"{list(bounds)} must go from low to high")
    return bounds


Interval = Annotated[tuple[float, float], AfterValidator(_rises)]

_FREEZABLE = re.compile(r"encoder|embeddings|pooler|layers\.\d+(-\d+)?|heads\.[^.]+")


class Spec(BaseModel):
    """A block of a recipe: its keys are fixed, its values do not change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class EncoderSpec(Spec):
    name: str
    """A folder, a name of `tercet weights`, or a model hub id."""
    pooling: PoolingName = "mean"
    """How hidden states become one vector a sentence."""
    max_tokens: Annotated[int, Field(ge=4, le=4096)] = 128
    """Longer sentences, and joined pairs, are cut here."""
    dropout: Share = 0.1
    """Dropout of hidden states while training."""
    attention_dropout: Share = 0.1
    """Dropout of attention weights while training."""


class DataSpec(Spec):
    layout: str | None = None
    """A known layout (`cs224n-sst`, ...), which fills in files, columns and format."""
    train: list[str] = Field(default_factory=list)
    """Training files, relative to `--data`, read one after the other."""
    dev: list[str] = Field(default_factory=list)
    """Files that scores are measured on."""
    texts: list[Column] | None = None
    """One, two or three text columns, by name or by number from 1."""
    label: Column | None = None
    """The label column, by name or by number from 1."""
    delimiter: Literal["tab", "comma"] | None = None
    """Of CSV and TSV files; found out when left open."""
    quoting: bool | None = None
    """Whether `"` quotes a field; found out when left open."""
    header: bool | None = None
    """Whether the first line names the columns; found out when left open."""
    label_map: dict[str, float] | None = None
    """What each label word is worth; rows with other words are bad rows."""
    on_bad_row: Literal["fail", "skip"] = "fail"
    """A row without text or label: fail, or skip, count and report it."""
    limit: Count | None = None
    """Only the first rows of each file, for trials."""

    @field_validator("train", "dev", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("texts", mode="before")
    @classmethod
    def _one_column_is_a_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | int) else value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.layout is None and not (self.train or self.dev):
            raise ValueError("needs a `layout`, or `train` or `dev` files")
        if self.layout is None and self.texts is None:
            raise ValueError("needs `texts`, the text columns, where there is no `layout`")
        if self.texts is not None and not 1 <= len(self.texts) <= 3:
            raise ValueError("`texts` names one, two or three columns")
        return self


class MlpHeadSpec(Spec):
    kind: Literal["mlp"] = "mlp"
    hidden: list[Count] = Field(default_factory=list)
    """Widths of hidden layers; none makes it one linear layer."""
    activation: Activation = "relu"
    dropout: Share = 0.1
    """Before each linear layer."""


class FeatureHeadSpec(Spec):
    kind: Literal["features"] = "features"
    features: Annotated[list[Feature], Field(min_length=1)]
    """What of the two vectors is laid side by side."""
    hidden: list[Count] = Field(default_factory=list)
    activation: Activation = "relu"
    dropout: Share = 0.1


class CosineHeadSpec(Spec):
    kind: Literal["cosine"] = "cosine"
    projection: bool = False
    """A linear layer of the vectors' own width before the cosine."""
    dropout: Share = 0.0
    """Before the projection."""


HeadSpec = Annotated[MlpHeadSpec | FeatureHeadSpec | CosineHeadSpec, Field(discriminator="kind")]


class CrossEntropySpec(Spec):
    kind: Literal["cross-entropy"] = "cross-entropy"
    label_smoothing: Share = 0.0


class BinaryCrossEntropySpec(Spec):
    kind: Literal["binary-cross-entropy"] = "binary-cross-entropy"


class MeanSquaredErrorSpec(Spec):
    kind: Literal["mean-squared-error"] = "mean-squared-error"
    targets: Interval | None = None
    """The task's label range is scaled onto this one; unscaled when left open."""


class MeanAbsoluteErrorSpec(Spec):
    kind: Literal["mean-absolute-error"] = "mean-absolute-error"
    targets: Interval | None = None


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
    | SimCSESpec
    | MultipleNegativesRankingSpec
    | TripletSpec,
    Field(discriminator="kind"),
]
ON_VECTORS = (SimCSESpec, MultipleNegativesRankingSpec, TripletSpec)
"""Objectives that read vectors and need neither head nor labels."""


class GearSpec(Spec):
    head: HeadSpec | None = None
    """Left out where the objective reads the vectors themselves."""
    objective: ObjectiveSpec

    @property
    def on_vectors(self) -> bool:
        return isinstance(self.objective, ON_VECTORS)

    @model_validator(mode="after")
    def _head_fits_objective(self) -> Self:
        kind = self.objective.kind
        if self.on_vectors and self.head is not None:
            raise ValueError(f"objective `{kind}` reads vectors and takes no `head`")
        if not self.on_vectors and self.head is None:
            raise ValueError(f"objective `{kind}` needs a `head`")
        return self


class TaskSpec(Spec):
    data: DataSpec
    labels: Annotated[list[str], Field(min_length=2)] | None = None
    """Names of the classes, in the order of their numbers from 0."""
    range: Interval | None = None
    """Lowest and highest label of a graded task."""
    metric: Metric | None = None
    """The figure that stands for this task: accuracy of classes, pearson of grades."""
    batch: Count | None = None
    """Rows a batch, where it differs from the stage's."""
    weight: Positive = 1.0
    """Factor on this task's loss."""
    single: GearSpec | None = None
    """The head on one sentence."""
    bi: GearSpec | None = None
    """The head on two vectors, each encoded by itself."""
    cross: GearSpec | None = None
    """The head on two sentences encoded jointly."""

    @property
    def gears(self) -> dict[Gear, GearSpec]:
        """The gears that this task has, the most exact first."""
        found: dict[Gear, GearSpec | None] = {
            "cross": self.cross,
            "bi": self.bi,
            "single": self.single,
        }
        return {gear: spec for gear, spec in found.items() if spec is not None}

    @property
    def predicts(self) -> bool:
        """Whether it has labels to predict; contrastive tasks do not."""
        return any(not spec.on_vectors for spec in self.gears.values())

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What predictions of this task are measured by; the first stands for it by default."""
        if self.labels is None:
            return ("pearson", "spearman")
        return ("accuracy", "macro-f1", "f1") if len(self.labels) == 2 else ("accuracy", "macro-f1")

    @property
    def chosen_metric(self) -> Metric:
        return self.metric or self.metrics[0]

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if not self.gears:
            raise ValueError("needs a gear: `single`, `bi` or `cross`")
        if self.labels is not None and self.range is not None:
            raise ValueError("has `labels` (classes) or `range` (grades), not both")
        if self.labels is not None and len(set(self.labels)) < len(self.labels):
            raise ValueError("`labels` names a class twice")
        for gear, spec in self.gears.items():
            _check_gear(self, gear, spec)
        if self.chosen_metric not in self.metrics:
            fitting = ", ".join(self.metrics)
            raise ValueError(f"`metric` {self.metric!r} does not fit; use one of {fitting}")
        return self


def _check_gear(task: TaskSpec, gear: Gear, spec: GearSpec) -> None:
    kind = spec.objective.kind
    if spec.on_vectors and gear == "cross":
        raise ValueError(f"objective `{kind}` compares separate vectors: use gear `bi`")
    if kind == "cross-entropy" and task.labels is None:
        raise ValueError(f"objective `{kind}` needs `labels`, the names of the classes")
    if kind == "binary-cross-entropy" and (task.labels is None or len(task.labels) != 2):
        raise ValueError(f"objective `{kind}` needs exactly two `labels`")
    if kind.startswith("mean-") and task.range is None:
        raise ValueError(f"objective `{kind}` needs `range`, the lowest and highest label")
    if spec.head is not None and (gear == "bi") != (spec.head.kind in ("features", "cosine")):
        fitting = "`features` or `cosine`" if gear == "bi" else "`mlp`"
        raise ValueError(f"gear `{gear}` needs a head of kind {fitting}, not `{spec.head.kind}`")
    if isinstance(spec.head, CosineHeadSpec) and kind == "cross-entropy":
        raise ValueError("a `cosine` head gives one number and cannot feed `cross-entropy`")


class ScheduleSpec(Spec):
    kind: Literal[
        "sequential", "round-robin", "random", "proportional", "temperature", "annealed", "together"
    ] = "round-robin"
    """sequential: whole passes in order; round-robin: batch by batch in order; random: drawn by
    `weights`; proportional: every batch of every task once, shuffled; temperature: drawn by size to
    the power 1/`temperature`; annealed: drawn by size at first, in the end nearly equally;
    together: a batch of every task each step, losses summed."""
    order: list[str] | None = None
    """Of sequential and round-robin; a task may stand in it several times."""
    weights: dict[str, Positive] | None = None
    """Of random: how likely each task is; equal when left out."""
    temperature: Positive = 2.0
    walk: Literal["once", "cycle"] = "once"
    """Of round-robin and together: each epoch walks every task's data once, or cycles the smaller
    ones until the largest is done."""
    steps_per_epoch: Count | None = None
    """Of random, temperature and annealed; as many batches as all tasks hold when left out."""

    @model_validator(mode="after")
    def _keys_fit_kind(self) -> Self:
        drawn = self.kind in ("random", "temperature", "annealed")
        if self.order is not None and self.kind not in ("sequential", "round-robin"):
            raise ValueError(f"`order` has no meaning for kind `{self.kind}`")
        if self.weights is not None and self.kind != "random":
            raise ValueError(f"`weights` has no meaning for kind `{self.kind}`")
        if self.steps_per_epoch is not None and not drawn:
            raise ValueError(f"`steps_per_epoch` has no meaning for kind `{self.kind}`")
        if self.walk == "cycle" and self.kind not in ("round-robin", "together"):
            raise ValueError(f'`walk = "cycle"` has no meaning for kind `{self.kind}`')
        return self


class OptimiserSpec(Spec):
    lr: Positive = 2e-5
    head_lr: Positive | None = None
    """Learning rate of heads, where it differs."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    """Not on biases and norms."""
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Positive = 1e-8
    decay: Literal["constant", "linear", "cosine"] = "linear"
    """How the learning rate falls, to zero, over the stage."""
    warmup: Share = 0.1
    """Share of the stage's steps over which the learning rate rises first."""
    clip: Annotated[float, Field(ge=0.0)] = 1.0
    """Greatest norm of the gradient; 0 leaves it alone."""


class StageSpec(Spec):
    name: Annotated[str, Field(min_length=1)] = "train"
    tasks: Annotated[list[str], Field(min_length=1)] | None = None
    """Which tasks train; all of them when left out."""
    schedule: ScheduleSpec = ScheduleSpec()
    epochs: Positive | None = None
    steps: Count | None = None
    """How long: exactly one of `epochs` and `steps`."""
    batch: Count = 32
    """Rows a batch of every task that sets none itself; over all processes."""
    accumulate: Count = 1
    """Batches of a task whose gradients make one step."""
    freeze: list[str] = Field(default_factory=list)
    """Parts that do not train: encoder, embeddings, layers.0-5, pooler, heads.TASK."""
    surgery: Surgery | None = None
    """Gradient surgery by name, with schedule `together`."""
    optimiser: OptimiserSpec = OptimiserSpec()
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """bf16 is autocast over fp32 weights; auto takes it on GPUs only."""

    @field_validator("freeze")
    @classmethod
    def _parts_exist(cls, parts: list[str]) -> list[str]:
        for part in parts:
            bounds = [int(number) for number in re.findall(r"\d+", part.removeprefix("heads."))]
            falls = part.startswith("layers.") and bounds != sorted(bounds)
            if falls or not _FREEZABLE.fullmatch(part):
                raise ValueError(
                    f"{part!r} is no part: use encoder, embeddings, layers.N, layers.N-M, pooler "
                    "or heads.TASK"
                )
        return parts

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("needs exactly one of `epochs` and `steps`")
        if self.surgery is not None and self.schedule.kind != "together":
            raise ValueError('`surgery` needs `schedule.kind` = "together"')
        return self


class EvaluationSpec(Spec):
    score: str = "mean"
    """What is the best checkpoint: `mean` of the tasks' metrics, `mean-shifted` with (r+1)/2 for
    correlations, or TASK.METRIC."""
    every: Annotated[int, Field(ge=0)] | None = None
    """Steps between scores on dev; 0 scores only at the end of the run; each epoch when left
    out."""
    rows: Count | None = None
    """Only the first dev rows of each task while training, for speed."""
    keep: Literal["best", "last"] = "best"
    """Which weights the run leaves as its model."""
    patience: Count | None = None
    """Scores without a better one before a stage ends early."""


class CheckpointSpec(Spec):
    every: Annotated[int, Field(ge=0)] = 500
    """Steps between checkpoints; 0 writes none but those of Ctrl-C and of a stage's end."""
    keep: Count = 2
    """How many of the newest are kept."""
