"""The keys of a recipe, from its typed specs."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reference.markdown import fenced, words
from tercet.recipe import Recipe
from tercet.specs import SURGERIES, ScheduleSpec
from tercet.specs.base import ONE_OR_MORE
from tercet.specs.parts import Part

_ONE_OF = (Union, types.UnionType)


def recipe_keys() -> str:
    """Every key of a recipe: its place, its type, its default, its meaning and an example."""
    return "\n".join(_block(Recipe, ""))


def _block(block: type[BaseModel], place: str) -> Iterator[str]:
    """The section of a block, then those of the blocks inside it."""
    yield f"## `{_table(place)}`\n" if place else "## The recipe itself\n"
    if block.__doc__ and block is not Recipe:
        yield f"{inspect.getdoc(block)}\n"
    yield from _keys(block, place)
    done = set()
    for key, field in block.model_fields.items():
        for inner in _blocks_in(field.annotation):
            if inner in done:
                continue
            done.add(inner)
            name = "MODE" if key in ("single", "bi", "cross") else key
            inner_place = _join(place, name)
            if key == "tasks":
                inner_place += ".NAME"
            elif key == "stages":
                inner_place += ".N"
            yield from (
                _kinds(inner, inner_place)
                if issubclass(inner, Part)
                else ()
                if key == "evaluation" and place
                else _block(inner, inner_place)
            )


def _table(place: str) -> str:
    """How a recipe writes the head of a block."""
    if place == "stages.N":
        return "[[stages]]"
    return f"[{place.replace('stages.N', 'stages')}]"


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _kinds(sort: type[Part], place: str) -> Iterator[str]:
    """The section of a block whose keys depend on its `kind`."""
    yield f"## `{_table(place)}`\n\nIts keys depend on its `kind`.\n"
    for kind in sort.registry:
        part = sort.registry[kind]
        modes = getattr(part, "modes", None)
        fits = f" Modes: {words(f'`{mode}`' for mode in modes)}." if modes else ""
        yield f'### `kind = "{kind}"`\n\n{inspect.getdoc(part)}{fits}\n'
        yield from _keys(part, place, kind=kind)


def _keys(block: type[BaseModel], place: str, *, kind: str | None = None) -> Iterator[str]:
    for key, field in block.model_fields.items():
        if key == "kind" or (issubclass(block, ScheduleSpec) and key not in block.keys):
            continue
        options = {"type": _type(field.annotation, field.metadata)}
        if default := _default(field):
            options["default"] = default
        name = _join(place, key) + (f" ({kind})" if kind else "")
        meaning, example = meaning_and_example(field)
        meaning += f"\n\nExample: `{key} = {example}`"
        if key == "surgery":
            kinds = (f"`{each}`: {SURGERIES[each].description}" for each in SURGERIES)
            meaning += "\n\n" + "\n".join(f"- {line}." for line in kinds)
        yield fenced("confval", name, meaning, **options)


def meaning_and_example(field: FieldInfo) -> tuple[str, str]:
    """The two parts of a key's docstring, which ends with "Example: `VALUE`.", in TOML."""
    text = " ".join((field.description or "").split())
    meaning, _, example = text.rpartition(" Example: ")
    return meaning, example.removesuffix(".").strip("`")


def _default(field: FieldInfo) -> str | None:
    """The default; None where the key is optional and its meaning says what then happens."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return None if "efault" in (field.description or "") else "none"
    if isinstance(value, BaseModel):
        return f'`kind = "{value.kind}"`' if isinstance(value, Part) else "its keys' defaults"
    return f"`{json.dumps(value)}`"


def _blocks_in(note: Any) -> list[type[BaseModel]]:
    if isinstance(note, type) and issubclass(note, BaseModel):
        return [note]
    return [block for inner in get_args(note) for block in _blocks_in(inner)]


def _type(note: Any, metadata: Iterable[Any] = ()) -> str:
    """A type in words."""
    if get_origin(note) is Annotated:
        inner, *more = get_args(note)
        flat = [part for each in more for part in getattr(each, "metadata", [each])]
        return _type(inner, [*flat, *metadata])
    facts = [part for each in metadata for part in getattr(each, "metadata", [each])]
    text = _plain_type(note)
    if ONE_OR_MORE in facts:
        text += ", or one alone"
    bounds = ", ".join(filter(None, map(_bound, facts)))
    return f"{text} ({bounds})" if bounds else text


def _plain_type(note: Any) -> str:
    origin, inner = get_origin(note), get_args(note)
    names = {str: "string", int: "integer", float: "number", bool: "true or false"}
    if note in names:
        return names[note]
    if origin is Literal:
        return words(f"`{value}`" for value in inner)
    if origin in _ONE_OF:
        return " or ".join(_type(each) for each in inner if each is not type(None))
    if origin is list and _blocks_in(note):
        return "list of tables"
    if origin is list:
        return f"list of {_plural(_type(inner[0]))}"
    if origin is tuple:
        return f"list of {len(inner)} {_plural(_type(inner[0]))}"
    if origin is dict:
        return "table" if _blocks_in(note) else f"table of {_plural(_type(inner[1]))} by name"
    if _blocks_in(note):
        return "table"
    raise TypeError(f"{note}: no words for this type of a recipe key")


def _plural(words: str) -> str:
    noun, bracket, bounds = words.partition(" (")
    plain = noun in ("string", "integer", "number")
    return f"{noun}s{bracket}{bounds}" if plain else words.replace("list of", "lists of", 1)


def _bound(fact: Any) -> str | None:
    match fact:
        case Ge(ge=low):
            return f"at least {low:g}"
        case Gt(gt=low):
            return f"above {low:g}"
        case Le(le=high):
            return f"at most {high:g}"
        case Lt(lt=high):
            return f"below {high:g}" if high != 2**31 else "below 2³¹"
        case MinLen(min_length=1):
            return "not empty"
        case MinLen(min_length=least):
            return f"at least {least} of them"
    return None
