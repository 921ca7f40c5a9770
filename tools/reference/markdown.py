"""Markdown as MyST reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable


def fenced(directive: str, argument: str, body: str, **options: str) -> str:
    """A directive of MyST; directives inside have shorter fences."""
    longest = max((len(run) for run in re.findall(r"^`{3,}", body, re.MULTILINE)), default=2)
    fence = "`" * (longest + 1)
    lines = [f":{key}: {value}".rstrip() for key, value in options.items()]
    return "\n".join([f"{fence}{{{directive}}} {argument}", *lines, "", body, fence, ""])


def words(values: Iterable[str]) -> str:
    """`a`, `b` or `c`"""
    *first, last = values
    return f"{', '.join(first)} or {last}" if first else last
