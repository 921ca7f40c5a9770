"""Where benchmarks find real data: the folder that TERCET_DATA names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tercet.data.files import find_file


def real_data() -> Path:
    """The folder; ends the program with one sentence if none is named."""
    if (folder := os.environ.get("TERCET_DATA")) is None:
        sys.exit("Set TERCET_DATA to the folder of the real data.")
    return Path(folder)


def real_file(name: str) -> Path:
    """A file of that folder, or of cs224n in it."""
    root = real_data()
    return find_file(name, (root, root / "cs224n"))
