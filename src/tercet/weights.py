"""Where encoder weights come from."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where fetched weights are kept: TERCET_CACHE, else ~/.cache/tercet/weights."""
    chosen = os.environ.get("TERCET_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "tercet" / "weights"


def present(name: str) -> Path | None:
    """The folder of a registry entry if it is already on this machine, or None."""
    shelf = os.environ.get("TERCET_WEIGHTS")
    for folder in ([Path(shelf)] if shelf else []) + [cache_folder()]:
        if (folder / name / "model.safetensors").is_file():
            return folder / name
    return None
