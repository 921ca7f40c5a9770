"""Names of classes that a Parquet file has for the numbers in it, as `datasets` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tercet.data.files import kind_of
from tercet.data.labels import parse_number
from tercet.data.readers import open_parquet
from tercet.files import parse_json

DECLARATION = b"huggingface"
"""The key of a schema's metadata in which `datasets` describes its columns."""


def declared_classes(path: Path, column: str) -> list[str] | None:
    """The names of a column's classes in the order of their numbers, if the file has them."""
    if kind_of(path) != "parquet":
        return None
    with open_parquet(path) as parquet:
        written = (parquet.schema_arrow.metadata or {}).get(DECLARATION)
    feature: Any = None if written is None else parse_json(written.decode())
    for key in ("info", "features", column):
        feature = feature.get(key) if isinstance(feature, dict) else None
    names = _names_in(feature)
    # A class that is called by a number could be mistaken for the one with this number.
    has_numbers = any(parse_number(name) is not None for name in names)
    return None if not names or has_numbers or len(set(names)) < len(names) else names


def _names_in(feature: Any) -> list[str]:
    """The names of classes, also of those in lists."""
    if isinstance(feature, list) and len(feature) == 1:
        return _names_in(feature[0])
    if not isinstance(feature, dict):
        return []
    if feature.get("_type") == "ClassLabel":
        return [str(name) for name in feature.get("names") or ()]
    return _names_in(feature.get("feature"))
