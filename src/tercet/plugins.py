"""Parts of users' own, without a fork: heads, objectives, schedules, surgeries, suites, encoders.

    import tercet
    from tercet.specs import HeadSpec

    @tercet.register
    class MaxoutSpec(HeadSpec): ...

A part works in recipes, training, resume, evaluation, reports and the server once its file is
imported, by Python code or with `load_plugin`. Model folders and recipes never import code.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TypeVar

from tercet.errors import TercetError
from tercet.specs.registry import Registry

P = TypeVar("P")

_loaded: dict[Path, str] = {}


def register(part: P) -> P:
    """Make a part known by its kind; also a decorator.

    part: a subclass of `HeadSpec`, `PredictiveSpec`, `ContrastiveSpec` or `ScheduleSpec` of
        `tercet.specs`, a `SurgerySpec`, an `Architecture` of `tercet.nn.architectures`, or a
        `Suite` of `tercet.evaluation.suite`

    >>> from typing import Literal
    >>> from tercet.specs import HEADS, HeadSpec
    >>> @tercet.register
    ... class MaxoutSpec(HeadSpec):
    ...     modes = ("single", "cross")
    ...     implementation = "parts:Maxout"  # a torch module
    ...     kind: Literal["maxout"] = "maxout"
    >>> "maxout" in HEADS
    True
    """
    registry = getattr(part, "registry", None)
    kind_name = getattr(part, "kind_name", None)
    if not isinstance(registry, Registry) or kind_name is None:
        raise TercetError(
            f"{part!r} cannot be registered: give a head, objective, schedule, surgery, suite or "
            "encoder architecture."
        )
    # The class of a record, such as `SurgerySpec`, is the package's: the caller defines the part.
    is_class = isinstance(part, type)
    module = part.__module__ if is_class else sys._getframe(1).f_globals["__name__"]
    registry.add(kind_name(), part, plugin=_file_of(module))
    return part


def load_plugin(file: str | Path) -> None:
    """Import a Python file that registers parts; a file is imported once per process."""
    path = Path(file).resolve()
    if path in _loaded:
        return
    if not path.is_file():
        raise TercetError(f"{file}: no such plugin file.")
    name = f"tercet_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TercetError(f"{file}: is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise TercetError(f"{file}: cannot be imported: {type(error).__name__}: {error}") from error
    _loaded[path] = name


def loaded_plugins() -> list[str]:
    """The files that `load_plugin` imported, for processes that must import them too."""
    return [str(path) for path in _loaded]


def _file_of(module: str) -> str:
    """The name of the file of a module."""
    return Path(getattr(sys.modules.get(module), "__file__", None) or module).name
