"""The reference pages of the site, made of what the code itself declares.

`docs/conf.py` puts them into the pages of docs/reference, where a line that ends with
`<!-- generated: NAME -->` names one of them. They are Markdown for MyST; nothing is written to a
file.
"""

from __future__ import annotations

from collections.abc import Callable

from reference.commands import commands, option_variables
from reference.endpoints import endpoints, statuses
from reference.python_api import python_api
from reference.recipe_keys import recipe_keys

GENERATED: dict[str, Callable[[], str]] = {
    "commands": commands,
    "endpoints": endpoints,
    "option-variables": option_variables,
    "python-api": python_api,
    "recipe-keys": recipe_keys,
    "statuses": statuses,
}
