"""Overrides of a recipe's values, as `--set` takes them: a.b=c."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tercet.errors import ArgumentError

_OTHER_LENGTH = {"steps": "epochs", "epochs": "steps"}


def apply(tree: dict[str, Any], override: str) -> None:
    """Set one value of a parsed recipe in place; a stage's `steps` replace its `epochs`."""
    key, equals, text = override.partition("=")
    path = key.strip().split(".")
    if not equals or not all(path):
        raise _wrong(override, "write it as KEY=VALUE, such as stages.0.epochs=1")
    node: Any = tree
    for part in path[:-1]:
        node = _descend(node, part, override)
    last = path[-1]
    if isinstance(node, list):
        node[_position(node, last, override)] = _value(text)
    elif isinstance(node, dict):
        node[last] = _value(text)
        if path[0] == "stages" and len(path) == 3:
            node.pop(_OTHER_LENGTH.get(last), None)
    else:
        raise _wrong(override, f"`{path[-2]}` is a value and has no keys")


def _descend(node: Any, part: str, override: str) -> Any:
    if isinstance(node, list):
        return node[_position(node, part, override)]
    if isinstance(node, dict):
        return node.setdefault(part, {})
    raise _wrong(override, f"`{part}` is inside a value that has no keys")


def _position(items: list[Any], part: str, override: str) -> int:
    """Stages are addressed by number from 0 or by their name."""
    names = [item["name"] for item in items if isinstance(item, dict) and "name" in item]
    if part in names and len(names) == len(items):
        return names.index(part)
    if re.fullmatch("[0-9]{1,9}", part) and int(part) < len(items):
        return int(part)
    named = f" nor one of the names {', '.join(names)}" if names else ""
    raise _wrong(override, f"`{part}` is not a number from 0 to {len(items) - 1}{named}")


def _wrong(override: str, reason: str) -> ArgumentError:
    return ArgumentError(f"`overrides` {override}: {reason}.", "overrides")


def _value(text: str) -> Any:
    """A TOML value; anything else is a plain string, so that quotes are optional."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # also for a number of 5,000 digits
        return text
