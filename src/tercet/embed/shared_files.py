"""Files that every machine of a cluster can reach: paths on shared disks, or object-store URIs."""

from __future__ import annotations

import hashlib
import os
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

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on a disk or in an object store.

    uri: as users give it; a path is absolute, since other processes have other working folders
    """

    uri: str

    @classmethod
    def at(cls, where: str) -> Folder:
        return cls(where.rstrip("/") if is_uri(where) else str(Path(where).absolute()))

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.uri}/{name}")

    def names(self) -> list[str]:
        """The files in it; none where it does not exist."""
        system, path = _open(self.uri)
        found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return sorted(one.base_name for one in found if one.is_file)

    def read(self, name: str) -> bytes:
        system, path = _open(self.uri)
        with system.open_input_stream(f"{path}/{name}") as stream:
            content: bytes = stream.read()
            return content

    def write(self, name: str, content: Any) -> str:
        """Write bytes or a buffer of them as a whole file; its sha256."""
        system, path = _open(self.uri)
        system.create_dir(path, recursive=True)
        with written_whole(f"{self.uri}/{name}") as stream:
            stream.write(content)
        return hashlib.sha256(content).hexdigest()

    def sha256(self, name: str) -> str | None:
        """Of a file in it; None where there is no such file."""
        system, path = _open(self.uri)
        summed = hashlib.sha256()
        try:
            with system.open_input_stream(f"{path}/{name}", compression=None) as stream:
                while chunk := stream.read(CHUNK):
                    summed.update(chunk)
        except FileNotFoundError:
            return None
        return summed.hexdigest()

    def remove(self) -> None:
        system, path = _open(self.uri)
        if system.get_file_info(path).type == fs.FileType.Directory:
            system.delete_dir(path)

    def remove_file(self, name: str) -> None:
        system, path = _open(self.uri)
        system.delete_file(f"{path}/{name}")

    def open(self, name: str) -> Any:
        """A file to be read from anywhere in it."""
        system, path = _open(self.uri)
        return system.open_input_file(f"{path}/{name}")


@contextmanager
def written_whole(where: str) -> Iterator[Any]:
    """A stream into a file that appears when all is written; until then the old one stays."""
    system, path = _open(where if is_uri(where) else str(Path(where).absolute()))
    folder, _, name = path.rpartition("/")
    aside = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with system.open_output_stream(aside) as stream:
            yield stream
        if isinstance(system, fs.LocalFileSystem):
            _sync(aside)
        system.move(aside, path)
    finally:
        if system.get_file_info(aside).is_file:
            system.delete_file(aside)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_uri(where: str) -> bool:
    return "://" in where


def find_files(where: str) -> list[str]:
    """The files that a path or URI stands for: itself, or all of a folder in the order of names.

    In a folder, files that hold no rows by their suffix are passed over, and so are hidden ones.
    """
    if not is_uri(where) and not Path(where).is_dir():
        return [str(find_file(where).absolute())]
    system, path = _open(where if is_uri(where) else str(Path(where).absolute()))
    info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise TercetError(f"{where}: no such file or folder.")
    if info.is_file:
        return [where]
    found = [
        one.path
        for one in system.get_file_info(fs.FileSelector(path, recursive=True))
        if one.is_file and _holds_rows(one.path[len(path) :])
    ]
    if not found:
        raise TercetError(f"{where}: holds no file of rows; known are {', '.join(KINDS)}.")
    scheme = f"{where.partition('://')[0]}://" if is_uri(where) else ""
    return [scheme + one for one in sorted(found)]


def _holds_rows(path: str) -> bool:
    hidden = any(part.startswith((".", "_")) for part in PurePosixPath(path).parts)
    return not hidden and suffix_of(Path(path)) in KINDS


@contextmanager
def fetched(file: str) -> Iterator[Path]:
    """A file as one of this machine's own; what lies in an object store is copied first."""
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
    """The file system of a path or URI, and the path in it."""
    if not is_uri(uri):
        return fs.LocalFileSystem(), uri
    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise TercetError(f"{uri}: cannot be reached ({reason}).") from error
    return system, path
