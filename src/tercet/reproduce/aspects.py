"""In which parts two recipes differ, in words: what a comparison of their scores compares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tercet.recipe import Recipe
from tercet.specs import EvaluationSpec, StageSpec

# Of keys of a task, of one of its modes, of a stage, of the encoder; others stand for themselves.
_WORDS = (
    (r"(data|subset)\..*", "rows"),
    (r"max_tokens", "length"),
    (r"(head\.|shared\.)?dropout", "dropout"),
    (r"shared\..*", "shared layers"),
    (r"head\..*", "head"),
    (r"objective\..*", "objective"),
    (r"weight", "weights of tasks"),
    (r"schedule\.order\..*", "order of tasks"),
    (r"schedule\..*", "schedule"),
    (r"optimiser\..*", "optimiser"),
    (r"freeze\..*", "freezing"),
)


def differing_aspects(first: Recipe, second: Recipe) -> list[str]:
    """Words for all in which they differ but names and seed, in the order of a recipe.

    Tasks and stages that only one of them has are `tasks` and `stages`, whatever their keys.
    """
    trees = [recipe.training() for recipe in (first, second)]
    aspects = list(_words_of_keys(*(tree["encoder"] for tree in trees)))
    own, other = (tree["tasks"] for tree in trees)
    common = [task for task in own if task in other]
    for task in common:
        aspects += _of_task(own[task], other[task])
    aspects += ["tasks"] * (own.keys() != other.keys())
    aspects += _of_stages(first, second, set(common))
    return list(dict.fromkeys(aspects))


def _of_task(own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    modes = [[mode for mode in ("single", "bi", "cross") if mode in task] for task in (own, other)]
    if modes[0] != modes[1]:
        yield "mode"
    both = [(mode, mode) for mode in modes[0] if mode in modes[1]]
    if not both and len(modes[0]) == len(modes[1]) == 1:
        both = [(modes[0][0], modes[1][0])]
    for before, after in both:
        yield from _words_of_keys(own[before], other[after])
    besides = [
        {key: value for key, value in task.items() if key not in named}
        for task, named in zip((own, other), modes, strict=True)
    ]
    yield from _words_of_keys(*besides)


def _of_stages(first: Recipe, second: Recipe, common: set[str]) -> Iterator[str]:
    """Stages are the same by their places, or by their names where their numbers differ.

    common: the tasks of both recipes
    """
    pairs = list(zip(first.stages, second.stages, strict=False))
    if len(first.stages) != len(second.stages):
        yield "stages"
        named = {stage.name: stage for stage in second.stages}
        pairs = [(stage, named[stage.name]) for stage in first.stages if stage.name in named]
    for own, other in pairs:
        if set(first.stage_tasks(own)) & common != set(second.stage_tasks(other)) & common:
            yield "tasks"
        yield from _words_of_keys(_keys_of(own), _keys_of(other))
        if _selection(first, own, common) != _selection(second, other, common):
            yield "selection"


def _keys_of(stage: StageSpec) -> dict[str, Any]:
    return stage.model_dump(mode="json", exclude_none=True, exclude={"name", "tasks", "evaluation"})


def _selection(recipe: Recipe, stage: StageSpec, common: set[str]) -> tuple[EvaluationSpec, Any]:
    """How a stage's weights are chosen, and by which of the common tasks."""
    evaluation = recipe.evaluation_of(stage)
    scored = set(recipe.scored_tasks(evaluation)) & common
    return evaluation.model_copy(update={"tasks": None}), scored


def _words_of_keys(own: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Words for the keys whose values differ; no dropout is a dropout of 0."""
    values, others = dict(_leaves(own)), dict(_leaves(other))
    for key in dict.fromkeys([*values, *others]):
        word = next((word for pattern, word in _WORDS if re.fullmatch(pattern, key)), key)
        default = 0.0 if word == "dropout" else None
        if values.get(key, default) != others.get(key, default):
            yield word


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its path."""
    if not isinstance(node, dict | list):
        yield path.removesuffix("."), node
        return
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield from _leaves(value, f"{path}{key}.")
