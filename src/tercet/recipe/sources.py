"""The text of a recipe, from a file or from the package."""

from __future__ import annotations

from pathlib import Path

from tercet.errors import TercetError, nearest

BUNDLED_FOLDER = Path(__file__).parents[1] / "recipes"


def bundled_files() -> dict[str, Path]:
    """The recipes of the package by name, in order."""
    paths = {file.relative_to(BUNDLED_FOLDER): file for file in BUNDLED_FOLDER.rglob("*.toml")}
    return dict(sorted((path.with_suffix("").as_posix(), file) for path, file in paths.items()))


def bundled_text(name: str) -> str:
    """The text of the bundled recipe of that name, or an error with the nearest names."""
    files = bundled_files()
    if name not in files:
        raise TercetError(
            f"{name}: no such recipe file, and no bundled recipe of that name"
            f"{nearest(name, files)}; `tercet recipes` lists them."
        )
    return files[name].read_text("utf-8")


def read(source: str | Path) -> tuple[str, str]:
    """The text of a bundled recipe or of a file, and what messages call it."""
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        if path.is_dir():
            raise TercetError(f"{source}: is a folder; give a recipe's name or its TOML file.")
        return bundled_text(str(source)), f"recipe {source}"
    try:
        return path.read_text("utf-8"), str(path)
    except FileNotFoundError as error:
        raise TercetError(f"{path}: no such recipe file.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TercetError(f"{path}: cannot be read as a recipe: {error}.") from error
