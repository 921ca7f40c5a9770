"""Whether the keys of a task fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tercet.specs.base import Mode, is_computable
from tercet.specs.heads import HEADS
from tercet.specs.modes import ModeSpec
from tercet.specs.objectives import PredictiveSpec

if TYPE_CHECKING:
    from tercet.specs.tasks import TaskSpec


def check_task(task: TaskSpec) -> None:
    """Raise a ValueError unless all keys fit together."""
    if not task.modes and task.like is not None:
        raise ValueError(f"is like `{task.like}`, but no task of that name has modes")
    if not task.modes:
        raise ValueError("needs a mode: `single`, `bi` or `cross`")
    if task.labels is not None and task.range is not None:
        raise ValueError("has `labels` (classes) or `range` (grades), not both")
    if task.labels is not None and len(set(task.labels)) < len(task.labels):
        raise ValueError("`labels` names a class twice")
    if task.range is not None and not is_computable(*task.range):
        raise ValueError(
            f"`range` is {list(task.range)}, in which single precision tells no grades apart; "
            "write them on another scale"
        )
    if task.multi_label and task.labels is None:
        raise ValueError("`multi_label` needs `labels`, the names of the labels")
    if task.prior is not None and (task.labels is None or len(task.labels) != 2):
        raise ValueError("`prior` needs exactly two `labels`")
    if task.prior is not None and task.multi_label:
        raise ValueError("`prior` needs one of two classes per row, without `multi_label`")
    drawn_by = None if task.subset is None else task.subset.drawn_by
    if task.prior is not None and drawn_by is not None:
        raise ValueError(f"`prior` and `{drawn_by}` both say how often classes come")
    if drawn_by is not None and task.labels is None:
        raise ValueError(f"`{drawn_by}` needs `labels`, the names of the classes")
    if drawn_by is not None and task.multi_label:
        raise ValueError(f"`{drawn_by}` needs one class per row, without `multi_label`")
    _check_class_weights(task)
    contrastive = [spec.objective.contrastive for spec in task.modes.values()]
    if task.chunk is not None and contrastive != [True]:
        raise ValueError("`chunk` needs one mode whose objective compares vectors")
    _check_sources(task)
    if task.side is not None and not task.predicts:
        raise ValueError("`side` needs a head that predicts: other tasks read plain vectors")
    for mode, spec in task.modes.items():
        _check_mode(task, mode, spec)
    if task.chosen_metric not in task.metrics:
        fitting = ", ".join(task.metrics)
        raise ValueError(f"`metric` {task.metric!r} does not fit; use one of {fitting}")


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
    if task.data.both_orders and ("single" in task.modes or not task.predicts):
        raise ValueError("`data.both_orders` needs a head that reads pairs")
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
