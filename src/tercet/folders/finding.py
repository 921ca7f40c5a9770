"""Where a model is: a folder, a run, the one that ships, or a name of `weights`."""

from __future__ import annotations

from pathlib import Path

from tercet import weights
from tercet.errors import TercetError
from tercet.folders.model_folder import is_model_folder

SHIPPED = "tercet/small"
"""The name of the model that comes with the package."""
SHIPPED_FOLDER = Path(__file__).parents[1] / "shipped"


def find_folder(source: str | Path | None) -> tuple[Path, str]:
    """The folder of a model, and a source that finds it from any working folder.

    source: as in `tercet.load`
    """
    here = find_local_folder(source)
    return here if here is not None else (weights.resolve(str(source)), str(source))


def find_local_folder(source: str | Path | None) -> tuple[Path, str] | None:
    """The same of a folder, a run or `tercet/small`; None for names that `weights` resolves."""
    if source is None:
        return _shipped()
    path = Path(source).expanduser()
    if str(source) and path.is_dir():
        run = path / "model"
        inner = run if not is_model_folder(path) and is_model_folder(run) else path
        return inner, str(path.resolve())
    if path.exists():
        raise TercetError(f"{path}: is a file; give the model folder.")
    return _shipped() if str(source) == SHIPPED else None


def _shipped() -> tuple[Path, str]:
    if not is_model_folder(SHIPPED_FOLDER):
        raise TercetError("No model ships with this release: give a model folder.")
    return SHIPPED_FOLDER, SHIPPED
