"""The first mistake of a recipe, in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from tercet.errors import nearest, shorten
from tercet.specs.parts import Part


def explain(
    model: type[BaseModel], errors: Sequence[ErrorDetails], *, tasks: Iterable[str] = ()
) -> str:
    """Where the first mistake is, and what is wrong there.

    model: that the recipe was checked by
    tasks: the names of its tasks, one of which an override may have misspelt
    """
    error = _first(errors)
    path = _path(error["loc"])
    key = f"`{'.'.join(map(str, path))}`" if path else "the recipe"
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return f"unknown key {key}{nearest(str(path[-1]), _keys_at(model, path[:-1]))}."
        case "missing":
            is_of_task = len(path) == 3 and path[0] == "tasks"
            return f"key {key} is missing{nearest(str(path[1]), tasks) if is_of_task else ''}."
        case "kind_missing":
            return f"{key} needs a `kind`."
        case "kind_unknown":
            return f"{key}: {error['msg']}"
        case "value_error":
            return f"{key}: {context['error']}."
    shown = shorten(json.dumps(error["input"]), 60)
    return f"{key} is {shown}: {error['msg'][0].lower()}{error['msg'][1:]}."


def _first(errors: Sequence[ErrorDetails]) -> ErrorDetails:
    """The first mistake; of a value that may have several types, by the type that fits it best."""
    first = _path(errors[0]["loc"])
    same_value = [error for error in errors if _path(error["loc"])[: len(first)] == first]
    return max(same_value, key=lambda error: len(error["loc"]))


def _path(places: tuple[int | str, ...]) -> list[int | str]:
    """Where a mistake is in the file: without the levels that only the types have."""
    return [
        place
        for depth, place in enumerate(places)
        # A key of the file itself may look like such a level.
        if not (depth and str(place).startswith(("literal[", "list[")))
        and (depth < 4 or place not in ("constrained-str", "constrained-int"))
    ]


def _keys_at(model: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """The keys that a block at this path may have, over all kinds of it."""
    models: list[type[BaseModel]] = [model]
    for part in path:
        inner = [
            m.model_fields[str(part)].annotation for m in models if str(part) in m.model_fields
        ]
        models = [each for note in inner for each in _models_in(note)] or models
    return [key for each in models for key in each.model_fields]


def _models_in(note: Any) -> list[type[BaseModel]]:
    if isinstance(note, type) and issubclass(note, Part):
        return [note.registry[kind] for kind in note.registry]
    if isinstance(note, type) and issubclass(note, BaseModel):
        return [note]
    return [each for inner in get_args(note) for each in _models_in(inner)]
