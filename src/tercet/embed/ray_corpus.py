"""The rows of many files, checked on the cluster and cut into the same parts in every run."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tercet.data.files import kind_of
from tercet.data.stream import ID, TextFile
from tercet.embed.ray_cluster import import_ray
from tercet.embed.schema import aligned
from tercet.embed.shared_files import fetched, find_files
from tercet.errors import TercetError, shorten

# Small parts balance the load and lose little when a machine dies; a large corpus has larger parts,
# so that their number stays near this limit.
MOST_PARTS = 16_384
SMALLEST, LARGEST = 2048, 65_536
PARTS_PER_SHARE = 16


@dataclass(frozen=True, slots=True)
class Share:
    """Parts of one file that one process reads in order.

    file: the number of the file
    first: the number, in the corpus, of the file's first part
    parts: the numbers, in the corpus, of the parts to read, in the file's order
    """

    file: int
    first: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FileCorpus:
    """Files that have been checked, in their order.

    sources: the path or URI of each file
    columns: the columns of all files together: id, text, others
    size: rows per part; only the last part of a file has fewer
    """

    sources: tuple[str, ...]
    files: tuple[TextFile, ...]
    columns: pa.Schema
    size: int

    @classmethod
    def of(cls, sources: Sequence[str], files: Sequence[TextFile]) -> FileCorpus:
        rows = sum(file.rows for file in files)
        size = min(max(SMALLEST, -(-rows // MOST_PARTS)), LARGEST)
        return cls(tuple(sources), tuple(files), _common(sources, files), size)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def digest(self) -> str:
        """A digest of all rows and of how they are cut."""
        digests = [file.digest for file in self.files]
        return hashlib.sha256(json.dumps([self.size, self.names(), digests]).encode()).hexdigest()

    def names(self) -> list[str]:
        """The name of each file relative to the folder they have in common."""
        if len(self.sources) == 1:
            return [PurePosixPath(self.sources[0]).name]
        root = posixpath.commonpath(self.sources)
        return [str(PurePosixPath(source).relative_to(root)) for source in self.sources]

    def parts(self) -> list[int]:
        """The number of rows of each part."""
        return [rows for file in self.files for rows in self._parts_of(file)]

    def shares(self, wanted: set[int]) -> list[Share]:
        """The wanted parts, divided among processes; several can read one Parquet file."""
        shares: list[Share] = []
        first = 0
        for number, file in enumerate(self.files):
            count = len(self._parts_of(file))
            parts = [part for part in range(first, first + count) if part in wanted]
            length = PARTS_PER_SHARE if kind_of(file.path) == "parquet" else max(len(parts), 1)
            shares += [
                Share(number, first, tuple(parts[start : start + length]))
                for start in range(0, len(parts), length)
            ]
            first += count
        return shares

    def read(self, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The number and the rows of each part of a share."""
        start = share.parts[0] - share.first
        wanted = set(share.parts)
        with fetched(self.sources[share.file]) as path:
            file = replace(self.files[share.file], path=path)
            batches = file.batches(self.size, start=start * self.size)
            for part, batch in enumerate(batches, start=share.parts[0]):
                if part in wanted:
                    yield part, self._aligned(batch, share.file)
                if part == share.parts[-1]:
                    return

    def _parts_of(self, file: TextFile) -> list[int]:
        return [min(self.size, file.rows - start) for start in range(0, file.rows, self.size)]

    def _aligned(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """Rows with the columns of the whole corpus, and ids that are unique in it."""
        file = self.files[number]
        if file.numbered and len(self.files) > 1:
            name = self.names()[number]
            ids = pa.array([f"{name}:{row}" for row in batch.column(ID).to_pylist()])
            batch = batch.set_column(batch.schema.get_field_index(ID), ID, ids)
        return aligned(batch, self.columns)


def _common(sources: Sequence[str], files: Sequence[TextFile]) -> pa.Schema:
    """The columns of all files together; two number types become the wider one."""
    common = files[0].columns
    for source, file in zip(sources[1:], files[1:], strict=True):
        try:
            common = pa.unify_schemas([common, file.columns], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise TercetError(
                f"{source}: its columns do not match those of {sources[0]} ({reason})."
            ) from error
    return common


def survey(source: str, *, column: str | None, id_column: str | None) -> FileCorpus:
    """Open and check all files of a corpus, each on some machine of the cluster."""
    ray = import_ray()
    sources = find_files(source)
    remote_open = ray.remote(open_file)
    files = [remote_open.remote(file, column=column, id_column=id_column) for file in sources]
    return FileCorpus.of(sources, ray.get(files))


def open_file(source: str, *, column: str | None, id_column: str | None) -> TextFile:
    """Open a file at a path or URI; errors name that location, not the local copy."""
    with fetched(source) as path:
        try:
            return TextFile.open(path, column, id_column)
        except TercetError as error:
            raise TercetError(str(error).replace(str(path), source)) from error


def check_ids(corpus: FileCorpus) -> None:
    """Raise if two files hold the same id; each file alone has been checked already.

    8 bytes per row are collected here; ids with equal hashes are then compared themselves.
    """
    if len(corpus.files) == 1:
        return
    ray = import_ray()
    shares = corpus.shares(set(range(len(corpus.parts()))))
    hashes, stored = ray.remote(_hashes), ray.put(corpus)
    sorted_hashes = np.concatenate(ray.get([hashes.remote(stored, share) for share in shares]))
    sorted_hashes.sort()
    repeated = set(sorted_hashes[1:][sorted_hashes[1:] == sorted_hashes[:-1]].tolist())
    if not repeated:
        return
    with_hash = ray.remote(_ids_with)
    seen: dict[str, str] = {}
    candidates = ray.get([with_hash.remote(stored, share, repeated) for share in shares])
    for share, ids in zip(shares, candidates, strict=True):
        name = corpus.names()[share.file]
        for id_ in ids:
            if id_ in seen:
                raise TercetError(
                    f"id {shorten(id_)!r} is in {seen[id_]} and in {name}; an id may occur only "
                    "once."
                )
            seen[id_] = name


def _hashes(corpus: FileCorpus, share: Share) -> NDArray[np.uint64]:
    """A hash of each id, the same in every process, uint64 [rows]."""
    return np.fromiter(map(_hash, _ids(corpus, share)), np.uint64)


def _ids_with(corpus: FileCorpus, share: Share, hashes: set[int]) -> list[str]:
    return [id_ for id_ in _ids(corpus, share) if _hash(id_) in hashes]


def _ids(corpus: FileCorpus, share: Share) -> list[str]:
    return [id_ for _, batch in corpus.read(share) for id_ in batch.column(ID).to_pylist()]


def _hash(id_: str) -> int:
    return int.from_bytes(hashlib.blake2b(id_.encode(), digest_size=8).digest(), "little")
