"""What a rule that changes sentences is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """A rule: a pure function of a text and a seed.

    keeps: whether the meaning stays the same, so that predictions should not change
    change: the changed text, or None if there is nothing to change
    """

    name: str
    keeps: bool
    change: Callable[[str, int], str | None]
