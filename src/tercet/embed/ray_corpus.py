"""All rows of a corpus of many files, cut into parts that never change."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pyarrow as pa

from tercet.data.files import kind_of
from tercet.data.stream import ID, TextFile
from tercet.embed.shared_files import fetched
from tercet.errors import TercetError

# Small parts spread well and lose little when a machine dies; a large corpus gets larger ones, so
# that there are never many more than this.
MOST_PARTS = 16_384
SMALLEST, LARGEST = 2048, 65_536
PARTS_A_READ = 16


@dataclass(frozen=True, slots=True)
class Share:
    """Parts of one file that one process reads, one after the other.

    first: the number, in the corpus, of the file's first part
    parts: those to read, in the file's order, counted as in the corpus
    """

    file: int
    first: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files that have been looked through, in their order.

    sources: where each lies, a path or URI
    columns: what all of them hold: id, text, others
    size: rows of a part; only the last part of a file has fewer
    """

    sources: tuple[str, ...]
    files: tuple[TextFile, ...]
    columns: pa.Schema
    size: int

    @classmethod
    def of(cls, sources: Sequence[str], files: Sequence[TextFile]) -> Corpus:
        rows = sum(file.rows for file in files)
        size = min(max(SMALLEST, -(-rows // MOST_PARTS)), LARGEST)
        return cls(tuple(sources), tuple(files), _common(sources, files), size)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def digest(self) -> str:
        """Of all rows and of how they are cut."""
        found = [file.digest for file in self.files]
        return hashlib.sha256(json.dumps([self.size, self.names(), found]).encode()).hexdigest()

    def names(self) -> list[str]:
        """What each file is called within the folder that holds them all."""
        if len(self.sources) == 1:
            return [PurePosixPath(self.sources[0]).name]
        root = posixpath.commonpath(self.sources)
        return [str(PurePosixPath(source).relative_to(root)) for source in self.sources]

    def parts(self) -> list[int]:
        """How many rows each part has."""
        return [rows for file in self.files for rows in self._parts_of(file)]

    def shares(self, wanted: set[int]) -> list[Share]:
        """The wanted parts, shared out among processes; several can read one file of Parquet."""
        found: list[Share] = []
        first = 0
        for number, file in enumerate(self.files):
            count = len(self._parts_of(file))
            parts = [part for part in range(first, first + count) if part in wanted]
            length = PARTS_A_READ if kind_of(file.path) == "parquet" else max(len(parts), 1)
            found += [
                Share(number, first, tuple(parts[start : start + length]))
                for start in range(0, len(parts), length)
            ]
            first += count
        return found

    def read(self, share: Share) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The parts of a share, each with its number and rows."""
        start = share.parts[0] - share.first
        wanted = set(share.parts)
        with fetched(self.sources[share.file]) as path:
            file = replace(self.files[share.file], path=path)
            batches = file.batches(self.size, start=start * self.size)
            for part, batch in enumerate(batches, start=share.parts[0]):
                if part in wanted:
                    yield part, self._fitted(batch, share.file)
                if part == share.parts[-1]:
                    return

    def _parts_of(self, file: TextFile) -> list[int]:
        return [min(self.size, file.rows - start) for start in range(0, file.rows, self.size)]

    def _fitted(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """Rows with the columns of the whole corpus, and ids that no other file has."""
        file = self.files[number]
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        if file.numbered and len(self.files) > 1:
            name = self.names()[number]
            arrays[ID] = pa.array([f"{name}:{row}" for row in batch.column(ID).to_pylist()])
        columns = [
            arrays[field.name].cast(field.type)
            if field.name in arrays
            else pa.nulls(len(batch), field.type)
            for field in self.columns
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.columns)


def _common(sources: Sequence[str], files: Sequence[TextFile]) -> pa.Schema:
    """The columns of all files together; numbers of two kinds become the wider one."""
    common = files[0].columns
    for source, file in zip(sources[1:], files[1:], strict=True):
        try:
            common = pa.unify_schemas([common, file.columns], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise TercetError(
                f"{source}: its columns do not go with those of {sources[0]} ({reason})."
            ) from error
    return common
