"""The kind of values in a column, and conversion of values to it."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
ARROW = {"int": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}


def kind_of_value(value: Any, *, written: bool) -> str:
    """The kind of a value: of a cell of a delimited file by its spelling, else by its type."""
    if isinstance(value, str):
        if not written:
            return "string"
        return (
            "int" if _WHOLE.fullmatch(value) else "double" if _NUMBER.fullmatch(value) else "string"
        )
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) < 2**63 else "string"
    return "double" if isinstance(value, float) else "string"


def wider(first: str | None, second: str) -> str:
    """The kind that can hold values of both."""
    if first is None or first == second:
        return second
    return "double" if {first, second} == {"int", "double"} else "string"


def as_string(value: Any) -> str:
    """A value as text; nested values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def as_text(value: Any) -> str:
    """A value as a text to embed: stripped, and empty if missing."""
    return "" if value is None else as_string(value).strip()


def as_kind(value: Any, kind: pa.DataType) -> Any:
    """A value that Arrow accepts for a column of this kind."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return as_string(value)
    if pa.types.is_int64(kind):
        return int(value)
    return float(value) if pa.types.is_float64(kind) else value
