"""The public names of the package, from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cached_property
from typing import Any

from sphinx.util.inspect import stringify_signature

import tercet
from reference.markdown import fenced
from tercet.fitting.result import FitResult, TaskScore
from tercet.predictions import LabelSet, Prediction, Predictions
from tercet.report.measured import Measured
from tercet.search.hits import Hit
from tercet.training.train import TrainedRun

RESULTS = (FitResult, TaskScore, TrainedRun, Measured, Predictions, Prediction, LabelSet, Hit)
"""What public calls return."""


def python_api() -> str:
    """Every public name of `tercet`, from its signature and its docstring.

    The examples are one session, from top to bottom, which tests run.
    """
    names = [name for name in tercet.__all__ if name != "__version__"]
    values = {name: getattr(tercet, name) for name in names}
    functions = [
        _function(f"tercet.{name}", each)
        for name, each in values.items()
        if callable(each) and not inspect.isclass(each)
    ]
    classes = [
        _class(f"tercet.{name}", each) for name, each in values.items() if inspect.isclass(each)
    ]
    results = [_class(f"{each.__module__}.{each.__name__}", each) for each in RESULTS]
    return "\n".join(
        ["## Functions\n", *functions, "## Classes\n", *classes, "## What calls return\n", *results]
    )


def _function(name: str, function: Any) -> str:
    return fenced("py:function", f"{name}{_signature(function)}", _markdown(function))


def _class(name: str, kind: type) -> str:
    members = [_member(key, value) for key, value in _public(kind).items()]
    body = "\n".join([_markdown(kind), *_fields(kind), *filter(None, members)])
    sort = "py:exception" if issubclass(kind, Exception) else "py:class"
    return f"### {kind.__name__}\n\n" + fenced(sort, name, body)


def _public(kind: type) -> dict[str, Any]:
    """The public members of a class, and after them those of its bases in this package."""
    members: dict[str, Any] = {}
    for each in kind.__mro__:
        if each.__module__.startswith("tercet."):
            members = members | {key: vars(each)[key] for key in vars(each) if key not in members}
    return {key: value for key, value in members.items() if not key.startswith("_")}


def _fields(kind: type) -> list[str]:
    """The fields of a data class; its docstring explains those that need it."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return [
        fenced("py:attribute", field.name, "", type=str(field.type))
        for field in fields
        if not field.name.startswith("_")
    ]


def _member(key: str, value: Any) -> str | None:
    if isinstance(value, property | cached_property):
        return fenced("py:property", key, _markdown(value)) if value.__doc__ else None
    bare = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not inspect.isfunction(bare) or not bare.__doc__:
        return None
    marks = {"classmethod": ""} if isinstance(value, classmethod) else {}
    return fenced("py:method", f"{key}{_signature(bare, bound=True)}", _markdown(bare), **marks)


def _signature(function: Any, *, bound: bool = False) -> str:
    shape = inspect.signature(function)
    if bound:
        shape = shape.replace(parameters=list(shape.parameters.values())[1:])
    parameters = [_readable(each) for each in shape.parameters.values()]
    return stringify_signature(shape.replace(parameters=parameters), unqualified_typehints=True)


class _Name(str):
    """A default that a signature shows by its name."""

    __repr__ = str.__str__


def _readable(parameter: inspect.Parameter) -> inspect.Parameter:
    if not inspect.isfunction(parameter.default):
        return parameter
    return parameter.replace(default=_Name(parameter.default.__name__))


_ARGUMENT = re.compile(r"^((?:\w+, )*\w+): (?=\S)", re.MULTILINE)


def _markdown(value: Any) -> str:
    """A docstring as Markdown: its examples as code, its arguments as a list."""
    return "\n\n".join(map(_paragraph, (inspect.getdoc(value) or "").split("\n\n"))) + "\n"


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("    "):
        return f"```python\n{inspect.cleandoc(text)}\n```"
    if not _ARGUMENT.match(text):
        return text
    # An indented line continues the argument before it, whatever it looks like.
    return "\n".join(
        f"  {line.strip()}"
        if line.startswith(" ")
        else _ARGUMENT.sub(lambda found: f"- **{found[1]}**: ", line)
        for line in text.splitlines()
    )
