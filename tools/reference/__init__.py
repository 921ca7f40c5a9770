"""The reference pages of the site, made of what the code itself declares.

`docs/conf.py` puts them into the pages of docs/reference, where a line that ends with
`<!-- generated: NAME -->` names one of them. They are Markdown for MyST; nothing is written to a
file.
"""

from __future__ import annotations

from importlib import import_module

PLACES = {
    "commands": ("commands", "commands"),
    "endpoints": ("endpoints", "endpoints"),
    "option-variables": ("commands", "option_variables"),
    "python-api": ("python_api", "python_api"),
    "recipe-keys": ("recipe_keys", "recipe_keys"),
    "statuses": ("endpoints", "statuses"),
}
"""The module and the function that make each."""


def generated(name: str) -> str:
    """One of them; what it is made of, such as torch, is imported for a page that shows it."""
    module, function = PLACES[name]
    markdown: str = getattr(import_module(f"reference.{module}"), function)()
    return markdown
