"""One encoder, three answers: sentiment, paraphrase and similarity from a single BERT.

    import tercet

    model = tercet.load("runs/best/model")
    model.embed(["a sentence"])

Importing it is cheap: torch and the rest are imported when a name that needs them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tercet.errors import TercetError

if TYPE_CHECKING:
    from tercet.model import Model, load
    from tercet.recipe import Recipe
    from tercet.search.index import Index

__version__ = "0.1.0"
__all__ = ["Index", "Model", "Recipe", "TercetError", "__version__", "load"]

_HOMES = {
    "Index": "tercet.search.index",
    "Model": "tercet.model",
    "Recipe": "tercet.recipe",
    "load": "tercet.model",
}

# Hidden from type checkers, which would accept any attribute.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
