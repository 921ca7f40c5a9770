"""Parts by their kind: heads, objectives, schedules, surgeries, suites and architectures.

Each sort of part has one registry. Parts of the package are added where they are declared, parts of
users by `tercet.register`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Generic, TypeVar

from tercet.errors import TercetError, nearest

P = TypeVar("P")


class Registry(Generic[P]):
    """The parts of one sort, in the order in which they were added."""

    def __init__(self, sort: str) -> None:
        """sort: what a part is called in messages, such as `head`"""
        self.sort = sort
        self._parts: dict[str, P] = {}
        self._plugins: dict[str, str] = {}

    def add(self, kind: str, part: P, *, plugin: str | None = None) -> None:
        """Add a part; `plugin` names the user's file that defines it."""
        known = self._parts.get(kind)
        if known is not None and (plugin is None or self._plugins.get(kind) != plugin):
            raise TercetError(f"There is a {self.sort} `{kind}` already: give yours another kind.")
        self._parts[kind] = part
        if plugin is not None:
            self._plugins[kind] = plugin

    def __getitem__(self, kind: str) -> P:
        if kind not in self._parts:
            raise TercetError(self.unknown(kind))
        return self._parts[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def names(self) -> list[str]:
        """The known kinds."""
        return list(self._parts)

    def plugin(self, kind: str) -> str | None:
        """The user's file that defines a part; None for the package's own parts."""
        return self._plugins.get(kind)

    def unknown(self, kind: str) -> str:
        """The sentence for a kind that is not registered."""
        hint, known = nearest(kind, self._parts), ", ".join(self._parts)
        return (
            f"Unknown {self.sort} `{kind}`{hint}: use one of {known}, or load the plugin that "
            "defines it."
        )


def resolve(implementation: Any) -> Any:
    """What `module:name` refers to, imported on first use; anything else is returned as it is."""
    if not isinstance(implementation, str):
        return implementation
    module, _, name = implementation.partition(":")
    return getattr(import_module(module), name)
