"""One encoder, many answers: several sentence tasks on a single transformer encoder.

    import tercet

    model = tercet.load("runs/best/model")
    model.embed(["a sentence"])

Importing this is fast: torch is imported when a name that needs it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tercet.errors import TercetError, needing_torch

if TYPE_CHECKING:
    from tercet.fitting.fit import fit
    from tercet.model import Model, load
    from tercet.plugins import register
    from tercet.recipe import Recipe
    from tercet.report.measured import evaluate
    from tercet.search.index import Index
    from tercet.training.train import train

__version__ = "0.2.0"

_HOMES = {
    "Index": "tercet.search.index",
    "Model": "tercet.model",
    "Recipe": "tercet.recipe",
    "evaluate": "tercet.report.measured",
    "fit": "tercet.fitting.fit",
    "load": "tercet.model",
    "register": "tercet.plugins",
    "train": "tercet.training.train",
}
# A function here must not have the name of a subpackage: importing that one would replace it.
__all__ = [
    "Index",
    "Model",
    "Recipe",
    "TercetError",
    "__version__",
    "evaluate",
    "fit",
    "load",
    "register",
    "train",
]

# Hidden from type checkers, which would accept any attribute.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with needing_torch():
            value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
