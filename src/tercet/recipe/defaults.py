"""What the keys of a recipe imply for others, before they are checked."""

from __future__ import annotations

from typing import Any, get_args

from tercet.specs import Mode

_MODES = get_args(Mode)
_LIKE_KEYS = ("labels", "range", "prior", "multi_label", "class_weights", "side")


def complete(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with what its other keys imply: the encoder of the model in `onto`, and for a task
    that is like another its labels, their weights, its side weights and, unless it has modes of its
    own, its modes."""
    if isinstance(tree.get("onto"), str) and isinstance(tree.get("encoder", {}), dict):
        tree = {**tree, "encoder": {"name": tree["onto"], **tree.get("encoder", {})}}
    tasks = tree.get("tasks")
    if not isinstance(tasks, dict):
        return tree
    return {**tree, "tasks": {name: _with_defaults(task, tasks) for name, task in tasks.items()}}


def _with_defaults(task: Any, tasks: dict[str, Any]) -> Any:
    other = tasks.get(str(task.get("like"))) if isinstance(task, dict) else None
    if not isinstance(other, dict):
        return task
    has_modes = any(mode in task for mode in _MODES)
    keys = _LIKE_KEYS if has_modes else (*_LIKE_KEYS, *_MODES)
    return {**{key: other[key] for key in keys if other.get(key) is not None}, **task}
