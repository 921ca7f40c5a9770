"""Reads the templates of the HTML report and of SVG files."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def environment() -> Environment:
    return Environment(
        loader=PackageLoader("tercet.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(name: str) -> str:
    """The text of a file of the folder `templates`."""
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), name)[0]
