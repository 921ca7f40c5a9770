"""Files that every machine of a cluster can reach: on shared disks or in object stores."""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
from pyarrow import fs

from tercet.data.files import KINDS, find_file, suffix_of
from tercet.errors import TercetError
from tercet.files import replace_file

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder on a disk or in an object store.

    uri: a URI, or an absolute path, since other processes have other working folders
    """

    uri: str

    @classmethod
    def at(cls, location: str) -> SharedFolder:
        return cls(location.rstrip("/") if is_uri(location) else str(Path(location).absolute()))

    def __truediv__(self, name: str) -> SharedFolder:
        return SharedFolder(f"{self.uri}/{name}")

    def names(self) -> list[str]:
        """The files in the folder; none if it does not exist."""
        system, path = _open(self.uri)
        entries = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(entry.base_name for entry in entries if entry.is_file)

    def read(self, name: str) -> bytes:
        system, path = _open(self.uri)
        with system.open_input_stream(f"{path}/{name}") as stream:
            content: bytes = stream.read()
            return content

    def write(self, name: str, content: Any) -> str:
        """Write bytes, or a buffer, as a complete file. Returns its sha256."""
        system, path = _open(self.uri)
        system.create_dir(path, recursive=True)
        with replace_shared_file(f"{self.uri}/{name}") as stream:
            stream.write(content)
        return hashlib.sha256(content).hexdigest()

    def sha256(self, name: str) -> str | None:
        """The sha256 of a file; None if there is no such file."""
        system, path = _open(self.uri)
        digest = hashlib.sha256()
        try:
            with system.open_input_stream(f"{path}/{name}", compression=None) as stream:
                while chunk := stream.read(CHUNK):
                    digest.update(chunk)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    def remove(self) -> None:
        system, path = _open(self.uri)
        if system.get_file_info(path).type == fs.FileType.Directory:
            system.delete_dir(path)

    def remove_file(self, name: str) -> None:
        system, path = _open(self.uri)
        system.delete_file(f"{path}/{name}")

    def open(self, name: str) -> Any:
        """A file with random access."""
        system, path = _open(self.uri)
        return system.open_input_file(f"{path}/{name}")


@contextmanager
def replace_shared_file(location: str) -> Iterator[Any]:
    """A stream into a file that replaces the old one once it is complete."""
    system, path = _open(location if is_uri(location) else str(Path(location).absolute()))
    if isinstance(system, fs.LocalFileSystem):
        with replace_file(Path(path)) as local, system.open_output_stream(str(local)) as stream:
            yield stream
        return
    folder, _, name = path.rpartition("/")
    writing = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with system.open_output_stream(writing) as stream:
            yield stream
        system.move(writing, path)
    finally:
        if system.get_file_info(writing).is_file:
            system.delete_file(writing)


def is_uri(location: str) -> bool:
    return "://" in location


def find_files(location: str) -> list[str]:
    """The file at a path or URI, or all files of rows in a folder, sorted by name.

    In a folder, hidden files and files with an unknown suffix are skipped.
    """
    if not is_uri(location) and not Path(location).is_dir():
        return [str(find_file(location).absolute())]
    system, path = _open(location if is_uri(location) else str(Path(location).absolute()))
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise TercetError(f"{location}: no such file or folder.")
    if info.is_file:
        return [location]
    files = [
        entry.path
        for entry in system.get_file_info(fs.FileSelector(path, recursive=True))
        if entry.is_file and _holds_rows(entry.path[len(path) :])
    ]
    if not files:
        raise TercetError(f"{location}: holds no file of rows; known are {', '.join(KINDS)}.")
    scheme = f"{location.partition('://')[0]}://" if is_uri(location) else ""
    return [scheme + file for file in sorted(files)]


def _holds_rows(path: str) -> bool:
    hidden = any(part.startswith((".", "_")) for part in PurePosixPath(path).parts)
    return not hidden and suffix_of(Path(path)) in KINDS


@contextmanager
def fetched(file: str) -> Iterator[Path]:
    """The local path of a file; a file in an object store is copied first."""
    if not is_uri(file):
        yield Path(file)
        return
    with tempfile.TemporaryDirectory(prefix="tercet-") as folder:
        copy = Path(folder) / PurePosixPath(file).name
        system, path = _open(file)
        try:
            with system.open_input_stream(path, compression=None) as stream, copy.open("wb") as out:
                while chunk := stream.read(CHUNK):
                    out.write(chunk)
        except OSError as error:
            raise TercetError(f"{file}: cannot be fetched ({error}).") from error
        yield copy


def _open(uri: str) -> tuple[Any, str]:
    """The file system of a path or URI, and the path within it."""
    if not is_uri(uri):
        return fs.LocalFileSystem(), uri
    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise TercetError(f"{uri}: cannot be reached ({reason}).") from error
    return system, path
