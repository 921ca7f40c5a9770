"""Arrays on disk, memory-mapped, under a key of everything that they depend on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from tercet.errors import TercetError
from tercet.files import parse_json, release, replace_folder, sha256_of, write_text

MANIFEST = "manifest"
ATTEMPTS = 10
PAUSE = 0.02
"""Seconds by which each attempt waits longer than the one before."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Arrays by name, with notes that fit into JSON."""

    arrays: Mapping[str, NDArray[Any]]
    notes: Any


def cached(folder: Path, key: str, make: Callable[[], Stored]) -> Stored:
    """The entry under a key, made first if it is missing or damaged.

    If several processes need the same entry, one makes it and the others wait.
    """
    target = folder / key
    entry = _open(target)
    if entry is not None:
        return entry
    with _locked(target):
        # Another process may have made it in the meantime.
        return _open(target) or _make(make, target)


def hash_texts(columns: Sequence[Iterable[str]]) -> str:
    """The sha256 of texts and their boundaries."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(b"column")
        for text in column:
            encoded = text.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One process at a time, if the file system has locks.

    Locks only save work: without them all processes make the entry, and the first to finish wins.
    """
    with _cache_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.parent / f".{target.name[:16]}.lock")
    with suppress(NotImplementedError, OSError):
        lock.acquire()
    try:
        yield
    finally:
        release(lock)


def _make(make: Callable[[], Stored], target: Path) -> Stored:
    made = make()
    for attempt in range(ATTEMPTS):
        with _cache_errors(target.parent):
            _publish(made, target)
            entry = _open(target)
        if entry is not None:
            return entry
        # Without locks, another process may just have it in hand.
        time.sleep(PAUSE * attempt)
    raise TercetError(f"{target}: cannot be read back after writing; check the disk.")


@contextmanager
def _cache_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TercetError(
            f"{folder}: the cache cannot be written: {error.strerror}; set TERCET_CACHE to "
            "another folder."
        ) from error


def _publish(made: Stored, target: Path) -> None:
    """Write the entry, unless another process was faster."""
    for _ in range(ATTEMPTS):
        try:
            with replace_folder(target, overwrite=False) as writing:
                _write(made, writing)
            return
        except FileExistsError:
            if _open(target) is not None:
                return
            _remove_damaged(target)


def _remove_damaged(target: Path) -> None:
    """Remove a damaged entry, but never one that another process has just put in its place."""
    with TemporaryDirectory(dir=target.parent, prefix=".", suffix=".removed") as scratch:
        aside = Path(scratch) / target.name
        try:
            target.rename(aside)
        except OSError:  # another process has removed it
            return
        if _open(aside) is not None:
            with suppress(OSError):  # or a third process has written one
                aside.rename(target)


def _write(made: Stored, folder: Path) -> None:
    files = {}
    for name, array in made.arrays.items():
        path = folder / f"{name}.npy"
        np.save(path, array, allow_pickle=False)
        files[name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    content = json.dumps({"files": files, "notes": made.notes})
    write_text(folder / MANIFEST, f"{_digest(content)}\n{content}\n")


def _open(folder: Path) -> Stored | None:
    """The entry in a folder, or None if it is missing or damaged."""
    try:
        digest, content = (folder / MANIFEST).read_text("utf-8").splitlines()
        if digest != _digest(content):
            return None
        manifest = parse_json(content)
        arrays = {}
        for name, expected in manifest["files"].items():
            path = folder / f"{name}.npy"
            if path.stat().st_size != expected["bytes"] or sha256_of(path) != expected["sha256"]:
                return None
            arrays[name] = _map(path)
        return Stored(arrays, manifest["notes"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _map(path: Path) -> NDArray[Any]:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an empty array cannot be mapped
        mapped = np.load(path, allow_pickle=False)
    return np.asarray(mapped)
