"""Arrays on disk, memory-mapped, under a key of all that they were made from."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
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

MANIFEST = "manifest"
ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Stored:
    """Arrays by name, and what belongs to them and fits into JSON."""

    arrays: Mapping[str, NDArray[Any]]
    notes: Any


def default_folder() -> Path:
    """TERCET_CACHE, or the user's own cache folder, for tables."""
    chosen = os.environ.get("TERCET_CACHE")
    return (Path(chosen) if chosen else Path.home() / ".cache" / "tercet") / "tables"


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


def hash_file(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _publish(made: Stored, target: Path) -> None:
    """Write aside, then rename, so that nobody ever sees half of it."""
    aside = target.parent / f".{target.name[:16]}-{os.getpid()}-{secrets.token_hex(4)}"
    aside.mkdir()
    try:
        _write(made, aside)
        for _ in range(ATTEMPTS):
            try:
                aside.rename(target)
                return
            except OSError:
                if _open(target) is not None:
                    return
                _remove(target)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _remove(damaged: Path) -> None:
    """Take a damaged entry away in one step; it may be gone already."""
    grave = damaged.parent / f".{damaged.name[:16]}-damaged-{secrets.token_hex(4)}"
    try:
        damaged.rename(grave)
    except FileNotFoundError:
        return
    shutil.rmtree(grave, ignore_errors=True)


def _write(made: Stored, folder: Path) -> None:
    files = {}
    for name, array in made.arrays.items():
        path = folder / f"{name}.npy"
        with path.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        files[name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
    content = json.dumps({"files": files, "notes": made.notes})
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(f"{_digest(content)}\n{content}\n")
        file.flush()
        os.fsync(file.fileno())


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
            if path.stat().st_size != expected["bytes"] or hash_file(path) != expected["sha256"]:
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
