"""Whether the blocks of a recipe fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tercet.errors import nearest
from tercet.specs import EvaluationSpec, SharedSpec, StageSpec, TaskSpec

if TYPE_CHECKING:
    from tercet.recipe.recipe import Recipe


def check_recipe(recipe: Recipe) -> None:
    """Raise a ValueError unless all names exist and all blocks fit together."""
    for key in ("published", "published_train", "published_test"):
        _check_names(f"`{key}`", getattr(recipe, key) or {}, recipe.tasks)
    for name, task in recipe.tasks.items():
        if task.like is not None:
            check_like(name, task, recipe.tasks)
    _check_encoder(recipe)
    if recipe.unseen is not None:
        _check_names("unseen.keep", recipe.unseen.keep, recipe.tasks)
    shared = _shared_layers(recipe.tasks)
    for stage in recipe.stages:
        _check_stage(recipe, stage, shared)


def _check_encoder(recipe: Recipe) -> None:
    modes = [spec for task in recipe.tasks.values() for spec in task.modes.values()]
    if recipe.encoder.widths is not None and not any(spec.narrows for spec in modes):
        raise ValueError(
            "encoder.widths needs a task with a `cosine` head without projection, or with a "
            "contrastive objective"
        )
    sided = [name for name, task in recipe.tasks.items() if task.side is not None]
    if recipe.encoder.depths is not None and sided:
        raise ValueError(
            f"task `{sided[0]}` has `side` weights, which fit one depth: leave out `side` or "
            "encoder.depths"
        )
    if recipe.onto is not None and recipe.encoder.name != recipe.onto:
        raise ValueError(
            f"encoder.name is {recipe.encoder.name!r}, but `onto` adds tasks to the encoder of "
            f"{recipe.onto!r}: leave encoder.name out"
        )


def _check_stage(recipe: Recipe, stage: StageSpec, shared: set[str]) -> None:
    """shared: names of all shared layers"""
    where = f"stage `{stage.name}`"
    if recipe.onto is not None and "encoder" not in stage.freeze:
        raise ValueError(
            f"{where} trains the encoder, which `onto` keeps as it is: put `encoder` into "
            "its `freeze`"
        )
    frozen = [part.removeprefix("shared.") for part in stage.freeze if "shared." in part]
    if unknown := [name for name in frozen if name not in shared]:
        raise ValueError(f"{where} freezes unknown shared layers `{unknown[0]}`")
    frozen = [
        part.removeprefix("heads.").removeprefix("sides.")
        for part in stage.freeze
        if part.startswith(("heads.", "sides."))
    ]
    _check_names(where, [*(stage.tasks or []), *frozen], recipe.tasks)
    training = recipe.stage_tasks(stage)
    order, weights = stage.schedule.order, stage.schedule.weights
    _check_names(f"the order of {where}", order or [], training)
    _check_names(f"the weights of {where}", weights or {}, training)
    if order is not None and (missing := [task for task in training if task not in order]):
        raise ValueError(f"the order of {where} leaves out {', '.join(missing)}")
    _check_names(f"the goals of {where}", stage.schedule.goals or {}, training)
    evaluation = recipe.evaluation_of(stage)
    _check_evaluation(recipe, evaluation)
    if stage.schedule.after_score is not None:
        scored = recipe.scored_tasks(evaluation)
        _check_names(f"schedule `{stage.schedule.kind}` of {where}", training, scored)


def _check_evaluation(recipe: Recipe, evaluation: EvaluationSpec) -> None:
    predicting = [name for name, task in recipe.tasks.items() if task.answers]
    _check_names("evaluation.tasks", evaluation.tasks or [], predicting)
    scores = [
        f"{name}.{metric}"
        for name in recipe.scored_tasks(evaluation)
        for metric in recipe.tasks[name].metrics
    ]
    if evaluation.score not in ("mean", "mean-shifted", *scores):
        raise ValueError(
            f"evaluation.score {evaluation.score!r} should be one of mean, mean-shifted, "
            f"{', '.join(scores)}"
        )


def _shared_layers(tasks: Mapping[str, TaskSpec]) -> set[str]:
    """Names of all shared layers; layers of the same name must have the same keys."""
    specs: dict[str, SharedSpec] = {}
    for name, task in tasks.items():
        for mode, spec in task.modes.items():
            shared = spec.shared
            if shared is not None and specs.setdefault(shared.name, shared) != shared:
                raise ValueError(
                    f"shared layers `{shared.name}` of task `{name}`, mode `{mode}`, differ "
                    "from earlier ones of the same name"
                )
    return set(specs)


def check_like(name: str, task: TaskSpec, tasks: Mapping[str, TaskSpec]) -> None:
    """Raise a ValueError unless the heads that a task trains are those of the task it is like."""
    other = tasks.get(task.like or "")
    if other is None or not other.answers:
        known = [known for known, spec in tasks.items() if spec.answers]
        _check_names(f"task `{name}` is like another, and `like`", [task.like or ""], known)
        return
    needs = f"task `{name}` trains the heads of `{task.like}` and needs the same"
    if (task.labels, task.label_space) != (other.labels, other.label_space):
        raise ValueError(f"{needs} labels")
    if task.side != other.side:
        raise ValueError(f"{needs} side weights")
    for mode, spec in task.modes.items():
        own = other.modes.get(mode)
        same = own is not None and (spec.head, spec.shared) == (own.head, own.shared)
        if own is None or not same or spec.objective.kind != own.objective.kind:
            raise ValueError(f"{needs} head, shared layers and kind of objective in mode `{mode}`")


def _check_names(where: str, names: Iterable[str], tasks: Iterable[str]) -> None:
    known = list(tasks)
    for name in names:
        if name not in known:
            raise ValueError(
                f"{where} names task `{name}`, but the tasks are {', '.join(known)}"
                f"{nearest(name, known)}"
            )
