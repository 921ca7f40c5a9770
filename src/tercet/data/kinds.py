"""What kind of values a column holds, and values as that kind."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
ARROW = {"int": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "string": pa.string()}


def kind_of_value(value: Any, *, written: bool) -> str:
    """What a value is: a cell of a delimited file by how it is written, else by its type."""
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


def wider(one: str | None, other: str) -> str:
    """The kind that holds values of both."""
    if one is None or one == other:
        return other
    return "double" if {one, other} == {"int", "double"} else "string"


def as_string(value: Any) -> str:
    """A value as text; what is nested, as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def as_text(value: Any) -> str:
    """A value as a text to embed: without blanks around it, empty where there is none."""
    return "" if value is None else as_string(value).strip()


def as_kind(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow takes it for a column of this kind."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return as_string(value)
    if pa.types.is_int64(kind):
        return int(value)
    return float(value) if pa.types.is_float64(kind) else value
