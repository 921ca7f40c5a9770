"""Embeddings in a work folder, part by part, so that interrupted work can be resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tercet.data.stream import TEXT, VECTOR
from tercet.data.text_table import TextSource
from tercet.embed.schema import Identity, vector_array, vectors_of
from tercet.errors import TercetError
from tercet.files import exclusive, is_temporary, parse_json, replace_file, write_json
from tercet.model import Model
from tercet.progress import Progress, silent
from tercet.specs import Floats
from tercet.text.long_inputs import LongInputs

FORMAT = 2
PART = 16_384
"""Rows of the source per part: the most that an interruption loses."""
KEY_FILE = "key.json"
COUNTED = b"tercet.long"
"""The metadata of a part that tells how many of its texts were too long."""


def work_folder(out: str | Path) -> Path:
    """The folder of unfinished work on an output."""
    path = Path(out)
    return path.with_name(path.name + ".work")


@contextmanager
def writing_alone(out: str | Path) -> Iterator[Path]:
    """The work folder of an output; another process that writes the same output waits.

    Otherwise two models could share a folder, and each would remove or take the other's parts.
    """
    folder = work_folder(out)
    with exclusive(folder.with_name(f".{folder.name}.lock")):
        yield folder


@contextmanager
def working(out: str | Path, file: TextSource) -> Iterator[Path]:
    """A folder for work on an output by one input; another process with the same input waits.

    It is kept if the work is interrupted, and removed at the end.
    """
    root = work_folder(out)
    folder = root / f"tercet-{file.digest[:16]}"
    try:
        with exclusive(root / f".{folder.name}.lock"):
            yield folder
            remove_work(folder)
    finally:
        with suppress(OSError):  # others work in it, or it holds files of the user
            root.rmdir()


def remove_work(folder: Path) -> None:
    """Remove a work folder; one without our key is not ours and stays."""
    if not (folder / KEY_FILE).is_file():
        return
    # The key goes last: what a kill leaves is still known to be ours.
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != KEY_FILE:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Staged:
    """Rows of a file with their vectors, in memory-mapped parts."""

    files: tuple[Path, ...]
    schema: pa.Schema

    @cached_property
    def parts(self) -> list[pa.RecordBatch]:
        return list(self.batches())

    @property
    def rows(self) -> int:
        return sum(map(len, self.parts))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """id, text, other columns and vector, in the order of the file."""
        # Mapped one at a time: a part that has been read takes no memory.
        return (_map(path).replace_schema_metadata() for path in self.files)

    def table(self, *columns: str) -> pa.Table:
        return pa.Table.from_batches(self.parts, self.schema).select(list(columns))

    def vectors(self) -> list[Floats]:
        """The vectors of each part, float32 [rows, width], not copied."""
        return [vectors_of(part.column(VECTOR)) for part in self.parts]


def stage(
    file: TextSource,
    model: Model,
    identity: Identity,
    folder: Path,
    *,
    skip_empty: bool,
    progress: Progress = silent,
) -> Staged:
    """Embed a file into a work folder; parts that are already finished are kept.

    skip_empty: skip rows without text
    """
    try:
        _prepare(folder, file, identity, skip_empty=skip_empty)
        parts = _finish(
            file, model, folder, width=identity.width, skip_empty=skip_empty, progress=progress
        )
        files = list(parts)
    except OSError as error:
        raise TercetError(
            f"{folder}: cannot be written: {error.strerror or error}; the vectors so far are "
            "kept, and running it again resumes from there."
        ) from error
    return Staged(tuple(files), _schema(file, identity.width))


def _schema(file: TextSource, width: int) -> pa.Schema:
    return file.columns.append(pa.field(VECTOR, pa.list_(pa.float32(), width), nullable=False))


def _prepare(folder: Path, file: TextSource, identity: Identity, *, skip_empty: bool) -> None:
    """Keep the folder's parts if they came from the same file and model."""
    key = [FORMAT, PART, file.digest, identity.hash, identity.width, identity.long, skip_empty]
    path = folder / KEY_FILE
    try:
        if parse_json(path.read_text("utf-8")) == key:
            return
    except (FileNotFoundError, ValueError):
        pass
    if not path.is_file() and _holds_files(folder):
        raise TercetError(
            f"{folder}: holds other files, and work on the output would be put there; move them, "
            "or choose another output."
        )
    remove_work(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(path, key)


def _holds_files(folder: Path) -> bool:
    """Whether a folder holds more than what a kill left while our key was being written."""
    return folder.is_dir() and not all(map(is_temporary, folder.iterdir()))


def _finish(
    file: TextSource,
    model: Model,
    folder: Path,
    *,
    width: int,
    skip_empty: bool,
    progress: Progress,
) -> Iterator[Path]:
    count = -(-file.rows // PART)
    paths = [folder / f"part-{number:06d}.arrow" for number in range(count)]
    done = next((number for number, path in enumerate(paths) if not _is_whole(path)), count)
    for path in paths[:done]:
        model.add_count("texts", _counted(path))
        yield path
    if done == count:
        return
    schema = _schema(file, width)
    batches = file.batches(PART, start=done * PART)
    for number, batch in enumerate(batches, start=done):
        inner = _within(progress, start=number * PART, rows=len(batch), total_rows=file.rows)
        rows = batch.filter(pc.not_equal(batch.column(TEXT), "")) if skip_empty else batch
        before = model.long_inputs.get("texts", LongInputs())
        vectors = model.embed(rows.column(TEXT).to_pylist(), width=width, progress=inner)
        counted = model.long_inputs["texts"] - before
        embedded = pa.RecordBatch.from_arrays([*rows.columns, vector_array(vectors)], schema=schema)
        stored = embedded.replace_schema_metadata({COUNTED: json.dumps(astuple(counted))})
        with (
            replace_file(paths[number]) as writing,
            pa.OSFile(str(writing), "wb") as sink,
            pa.ipc.new_file(sink, stored.schema) as writer,
        ):
            writer.write_batch(stored)
        yield paths[number]


def _counted(path: Path) -> LongInputs:
    """How many texts of a part were too long."""
    return LongInputs(*json.loads(_map(path).schema.metadata[COUNTED]))


def _within(progress: Progress, *, start: int, rows: int, total_rows: int) -> Progress:
    """The progress of embedding one part, as progress through the whole file."""

    def report(done: int, total: int | None = None, *, note: str = "") -> None:
        progress(start + done * rows // (total or rows), total_rows)

    return report


def _is_whole(path: Path) -> bool:
    try:
        _map(path)
    except (OSError, pa.ArrowInvalid):
        return False
    return True


def _map(path: Path) -> pa.RecordBatch:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).get_batch(0)
