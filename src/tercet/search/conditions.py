"""Conditions of strangers: which SQL a server runs over its index."""

from __future__ import annotations

import re

from tercet.errors import ArgumentError, shorten

FUNCTIONS = (
    "abs", "array_contains", "array_has", "array_has_all", "array_has_any", "array_length", "cast",
    "ceil", "char_length", "coalesce", "contains", "date_part", "date_trunc", "ends_with", "floor",
    "isnan", "left", "length", "lower", "nullif", "octet_length", "regexp_like", "regexp_match",
    "right", "round", "starts_with", "strpos", "substr", "substring", "to_date", "to_timestamp",
    "trim", "try_cast", "upper",
)  # fmt: skip
"""Those whose results are hardly longer than a value of a column; `repeat`, say, makes gigabytes of
a few characters, which Lance allocates without a limit."""
_WORDS = frozenset({"and", "between", "ilike", "in", "is", "like", "not", "or"})
"""Words that may stand before a bracket without a call."""
_TYPES = frozenset({"char", "decimal", "numeric", "timestamp", "varchar"})
_QUOTED = re.compile(r"""(\w?)('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)""")
_CALL = re.compile(r"([\w.]+|[`'\"])\s*\(")
_HIDING = re.compile(r"--|/\*|\$|\|\|")
"""Comments and further quotes, in which a call could hide, and what joins texts."""


def check_condition(where: str) -> None:
    """Raise an ArgumentError unless a condition compares columns without making long values."""
    prefixed = next((match for match in _QUOTED.finditer(where) if match[1]), None)
    if prefixed is not None:
        raise _refused(f"`{shorten(prefixed[0])}`; leave a blank before the quote")
    bare = _QUOTED.sub(lambda match: 2 * match[2][0], where)
    hiding = _HIDING.search(bare)
    if hiding is not None:
        raise _refused(f"`{hiding[0]}`")
    for called in (match[1].lower() for match in _CALL.finditer(bare)):
        if called not in _WORDS and called not in _TYPES and called not in FUNCTIONS:
            raise _refused(f"`{shorten(called)}(`; functions are {', '.join(FUNCTIONS)}")


def _refused(what: str) -> ArgumentError:
    return ArgumentError(f"`where` may not have {what}.", "where")
