"""Files and folders that are replaced whole, JSON, checksums, and the cache folder."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tercet.errors import TercetError, shorten

_TEMPORARY, _REPLACED = ".tercet-tmp", ".tercet-old"
MOST_JSON = 2**26
"""Bytes of a JSON file; parsed, one can take 20 times as much memory."""
# What systems answer that cannot sync a folder.
_NO_FOLDER_SYNC = (errno.EBADF, errno.EINVAL, errno.EACCES, errno.EISDIR)
_POINTER = b"version https://git-lfs.github.com/spec/"


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Give a temporary path; the file written there replaces `path` when the block ends.

    After an error or a kill `path` is as it was before.
    """
    with _scratch_folder(path) as scratch:
        writing = scratch / path.name
        yield writing
        _sync(writing)
        writing.replace(path)
        _sync_folder(path.parent)


@contextmanager
def replace_folder(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give a temporary folder that replaces `path` when the block ends.

    After an error `path` is as it was before. A kill leaves the old folder or the new one, or, in
    the instant between two renames, the old one under a hidden name ending in `.tercet-old`.

    overwrite: if false, a folder with content at `path` is a FileExistsError
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _scratch_folder(path) as scratch:
        writing = scratch / path.name
        writing.mkdir()
        yield writing
        for content in writing.rglob("*"):
            if content.is_dir():
                _sync_folder(content)
            else:
                _sync(content)
        _sync_folder(writing)
        if overwrite:
            _swap(writing, path, replaced=scratch.with_suffix(_REPLACED))
        else:
            _rename_new(writing, path)
        _sync_folder(path.parent)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds the lock file at `path`, and hold it meanwhile.

    The lock ends with its process, however that ends. On systems without such locks nobody waits.
    """
    handle = _lock(path)
    try:
        yield
    finally:
        if handle is not None:
            try:
                path.unlink(missing_ok=True)
            finally:
                os.close(handle)


def release(lock: FileLock) -> None:
    """Release a lock, if it is held, and remove its file once nobody holds it any more."""
    if lock.is_locked:
        if lock.lock_counter == 1:
            with suppress(PermissionError):  # on Windows, where the lock itself removes it
                Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _lock(path: Path) -> int | None:
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process has just removed the empty folder
            continue
        except FileExistsError:  # the same, just after `mkdir` had found it
            if _is_other_than_a_folder(path.parent):
                raise
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:  # not every disk has locks
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        # Its owner has removed the file while this process waited for it.
        os.close(handle)


def _is_other_than_a_folder(path: Path) -> bool:
    """Whether a file has this name, or a link that leads to no folder; false if nothing has it."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISDIR(mode) and not path.is_dir()


def is_temporary(path: Path) -> bool:
    """Whether this is a file or folder that a writer has not finished."""
    return path.name.startswith(".") and path.name.endswith(_TEMPORARY)


def write_bytes(path: Path, content: bytes) -> None:
    with replace_file(path) as writing:
        writing.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Around code that reads the files of strangers: whatever they break is one sentence.

    A library may stumble over a damaged file in any way; those in Rust panic with BaseException.
    """
    try:
        yield
    except (TercetError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = shorten(" ".join(f"{type(error).__name__}: {error}".split()), 200)
        raise TercetError(
            f"{path}: cannot be read ({reason}); it is damaged, or not what it should be."
        ) from error


def parse_json(content: str | bytes) -> Any:
    """The value of a JSON text; one that nests too deeply is a ValueError, like others that are
    not valid."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def read_json(path: Path) -> Any:
    try:
        if path.stat().st_size > MOST_JSON:
            raise TercetError(f"{path} has more than {MOST_JSON:,} bytes; it should be short JSON.")
        return parse_json(path.read_text("utf-8"))
    except FileNotFoundError:
        raise TercetError(f"{path} does not exist.") from None
    except OSError as error:
        raise TercetError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise TercetError(f"{path} is not a text file in UTF-8; it should be JSON.") from None
    except ValueError as error:  # also for a number of 5,000 digits
        raise TercetError(f"{path} is not valid JSON: {error}.") from None


def read_json_object(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise TercetError(f"{path} holds a JSON {type(content).__name__}; it should be an object.")
    return content


def refuse_pointer(path: Path) -> None:
    """Raise if a file is what `git clone` leaves without Git LFS instead of a large file."""
    with path.open("rb") as file:
        is_pointer = file.read(len(_POINTER)) == _POINTER
    if is_pointer:
        raise TercetError(
            f"{path} is a pointer of Git LFS and not the file itself; fetch it with `git lfs pull`."
        )


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder(*parts: str) -> Path:
    """A folder in TERCET_CACHE, by default in ~/.cache/tercet."""
    chosen = os.environ.get("TERCET_CACHE")
    return (Path(chosen) if chosen else Path.home() / ".cache" / "tercet").joinpath(*parts)


@contextmanager
def _scratch_folder(path: Path) -> Iterator[Path]:
    """A folder next to `path`, locked while it is in use and removed at the end."""
    for other in path.parent.glob(f".*{_TEMPORARY}"):
        _remove_leftover(other)
    try:
        scratch, lock = _make_scratch(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        yield scratch
    except OSError as error:
        if str(error.filename).startswith(str(scratch)):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        lock.release()
        shutil.rmtree(scratch, ignore_errors=True)


def _make_scratch(path: Path) -> tuple[Path, FileLock]:
    while True:
        made = tempfile.mkdtemp(prefix=f".{path.name}.", suffix=_TEMPORARY, dir=path.parent)
        scratch = Path(made)
        lock = FileLock(scratch / ".lock")
        with suppress(NotImplementedError, OSError):  # not every disk has locks
            lock.acquire()
        # Another process may have taken it for a leftover before it was locked.
        if scratch.is_dir():
            return scratch, lock


def _remove_leftover(scratch: Path) -> None:
    """Remove the scratch folder of a killed process: the lock ended with the process."""
    lock = FileLock(scratch / ".lock", timeout=0)
    try:
        lock.acquire()
    except (Timeout, NotImplementedError, OSError):
        return
    shutil.rmtree(scratch, ignore_errors=True)
    lock.release()


def _swap(writing: Path, path: Path, *, replaced: Path) -> None:
    try:
        if path.is_dir():
            path.rename(replaced)
        writing.rename(path)
    finally:
        if replaced.is_dir() and not path.exists():
            replaced.rename(path)
    # Also those of killed processes; mkdtemp's names have eight characters.
    for old in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 8}{_REPLACED}"):
        shutil.rmtree(old, ignore_errors=True)


def _rename_new(writing: Path, path: Path) -> None:
    try:
        writing.rename(path)
    except OSError as error:
        # Another process may have taken away what was in the way.
        if path.exists() or error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        raise


def _sync(path: Path) -> None:
    # Windows syncs only what is open for writing, which folders cannot be.
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
