"""seen.safetensors: the sketch of the rows that a model was trained on, if its run recorded it."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError

from tercet.data.sketch import Sketch
from tercet.errors import TercetError

SEEN_FILE = "seen.safetensors"


def write_seen(folder: Path, sketch: Sketch | None) -> None:
    """Add the sketch to a model folder, where there is one."""
    if sketch is None:
        return
    from safetensors.numpy import save

    (folder / SEEN_FILE).write_bytes(save(sketch.to_arrays()))


def read_seen(folder: Path) -> Sketch | None:
    """The sketch of a model folder, or None where it has none."""
    path = folder / SEEN_FILE
    if not path.is_file():
        return None
    from safetensors.numpy import load_file

    try:
        return Sketch.from_arrays(load_file(path))
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise TercetError(
            f"{path}: cannot be read as a sketch of training rows: {error}."
        ) from error
