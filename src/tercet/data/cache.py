"""Arrays on disk, memory-mapped, under a key of all that they were made from."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.files import replace_folder, sha256_of, write_text

MANIFEST = "manifest"
ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Stored:
    """Arrays by name, and what belongs to them and fits into JSON."""

    arrays: Mapping[str, NDArray[Any]]
    notes: Any


def cached(folder: Path, key: str, make: Callable[[], Stored]) -> Stored:
    """What lies under a key, made first if nothing whole lies there.

    Of processes that want the same at once one makes it, and the others wait for it.
    """
    target = folder / key
    found = _open(target)
    if found is not None:
        return found
    with _alone(target):
        # Another process may have made it meanwhile.
        return _open(target) or _make(make, target)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """One process at a time, where the file system has locks.

    They only save work: without them all make the entry, and the first to finish wins.
    """
    with _told(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.parent / f".{target.name[:16]}.lock")
    with suppress(NotImplementedError, OSError):
        lock.acquire()
    try:
        yield
    finally:
        if lock.is_locked:
            Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


def _make(make: Callable[[], Stored], target: Path) -> Stored:
    made = make()
    with _told(target.parent):
        _publish(made, target)
    found = _open(target)
    if found is None:
        raise TercetError(f"{target}: was damaged as soon as it was written; is the disk sound?")
    return found


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TercetError(
            f"{folder}: the cache cannot be written: {error.strerror}; TERCET_CACHE names another "
            "folder."
        ) from error


def _publish(made: Stored, target: Path) -> None:
    for _ in range(ATTEMPTS):
        try:
            with replace_folder(target, overwrite=False) as writing:
                _write(made, writing)
            return
        except FileExistsError:
            # Another process was faster, or what is there is damaged.
            if _open(target) is not None:
                return
            shutil.rmtree(target, ignore_errors=True)


def _write(made: Stored, folder: Path) -> None:
    files = {}
    for name, array in made.arrays.items():
        path = folder / f"{name}.npy"
        np.save(path, array, allow_pickle=False)
        files[name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    content = json.dumps({"files": files, "notes": made.notes})
    write_text(folder / MANIFEST, f"{_digest(content)}\n{content}\n")


def _open(folder: Path) -> Stored | None:
    """The entry in a folder, or None where there is none or it is damaged."""
    try:
        digest, content = (folder / MANIFEST).read_text("utf-8").splitlines()
        if digest != _digest(content):
            return None
        manifest = json.loads(content)
        arrays = {}
        for name, expected in manifest["files"].items():
            path = folder / f"{name}.npy"
            if path.stat().st_size != expected["bytes"] or sha256_of(path) != expected["sha256"]:
                return None
            arrays[name] = _map(path)
        return Stored(arrays, manifest["notes"])
    except (OSError, ValueError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _map(path: Path) -> NDArray[Any]:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # nothing can be mapped where there are no elements
        mapped = np.load(path, allow_pickle=False)
    return np.asarray(mapped)
