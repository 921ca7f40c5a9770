"""What users pass as sentences or pairs: checked, and turned into lists of strings.

Tables of other libraries are known by what they can do; none of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any, NoReturn

from tercet.errors import TercetError, shorten

_MISSING = ("NAType", "NaTType")
Pair = tuple[str, str] | list[str]


def sentences_of(texts: Iterable[str]) -> list[str]:
    """A list, an array [n], a column of a table or a generator of sentences, as a list."""
    _refuse_whole(texts, "sentences", one="table[{first}]")
    found = _listed(texts)
    if set(map(type, found)) <= {str}:
        return found
    return [_text(text, place, "sentences") for place, text in enumerate(found)]


def sides_of(pairs: Iterable[Pair]) -> tuple[list[str], list[str]]:
    """A list, an array [n, 2] or a generator of pairs, as the first and the second sentences."""
    _refuse_whole(pairs, "pairs", one="list(zip(table[{first}], table[{second}]))")
    first, second = [], []
    for place, pair in enumerate(_listed(pairs)):
        pair = _listed(pair) if hasattr(pair, "tolist") else pair
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            _refuse("pairs of two sentences", pair, place)
        first.append(_text(pair[0], place, "pairs"))
        second.append(_text(pair[1], place, "pairs"))
    return first, second


def column_names(value: object) -> list[str] | None:
    """The columns of a table in memory (a data frame, an Arrow table, a dict); None if it is
    not one."""
    if isinstance(value, Mapping):
        return [str(name) for name in value]
    for names in (getattr(value, "column_names", None), getattr(value, "columns", None)):
        if names is not None and not callable(names):
            return [str(name) for name in names]
    return None


def _refuse_whole(inputs: object, what: str, *, one: str) -> None:
    """Raise if all of the inputs are something other than a list of them.

    one: how to take inputs out of a table
    """
    names = column_names(inputs)
    if names is not None:
        example = one.format(first=_quoted(names, 0), second=_quoted(names, 1))
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        how = "one column" if what == "sentences" else "pairs"
        raise TercetError(
            f"Expected {what}, not a table with the columns {shown}; give {how}, such as {example}."
        )
    dimensions = getattr(inputs, "ndim", 1)
    if isinstance(inputs, str | bytes) or dimensions == 0 or not isinstance(inputs, Iterable):
        _refuse(f"a list of {what}", inputs)


def _quoted(names: Sequence[str], place: int) -> str:
    """The name of a column as Python spells it; of a further column where there are too few."""
    return repr(names[place] if place < len(names) else "other")


def _listed(values: Any) -> list[Any]:
    """The values as Python objects: numpy, pandas and Arrow have each their own."""
    for method in ("to_pylist", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _text(value: object, place: int, what: str) -> str:
    if isinstance(value, str):
        return value
    if _is_missing(value):
        raise TercetError(
            f"Expected {what}, but the text at position {place} is missing ({value}); fill it in "
            "or leave it out."
        )
    return _refuse(
        "pairs of two strings" if what == "pairs" else "sentences, each a string", value, place
    )


def _is_missing(value: object) -> bool:
    """Missing values of tables are None, NaN, or of a type of their own, equal to nothing."""
    if isinstance(value, float):
        return isnan(value)
    return value is None or type(value).__name__ in _MISSING


def _refuse(expected: str, value: object, place: int | None = None) -> NoReturn:
    where = "" if place is None else f" at position {place}"
    raise TercetError(f"Expected {expected}, not {shorten(repr(value), 60)}{where}.")
