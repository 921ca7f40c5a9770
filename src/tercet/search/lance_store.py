"""Lance datasets as indexes: metadata, commits, and errors in one sentence.

Every change is one commit, so that a reader sees the old version or the new one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tercet.data.stream import ID, TEXT, VECTOR
from tercet.embed.schema import FORMAT, FORMAT_KEY, HASH_KEY, LAYERS_KEY, NAME_KEY
from tercet.errors import ArgumentError, TercetError, install_hint, shorten
from tercet.files import exclusive

ANN_KEY = "tercet.ann"
FULL, MISSING = "the disk is full", "a file of this index is missing"


def lance() -> Any:
    """The module `lance`, which is an extra."""
    # Lance warns on stderr about harmless events, such as a new dataset.
    os.environ.setdefault("LANCE_LOG", "error")
    try:
        import lance
    except ImportError as error:
        raise TercetError(
            f"An index needs Lance, which is not installed: {install_hint('search')}."
        ) from error
    return lance


def write_index(folder: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """Commit rows as the new and only content of an index."""
    reader = pa.RecordBatchReader.from_batches(schema, iter(batches))
    with lance_errors(folder):
        lance().write_dataset(reader, folder, mode="overwrite")


def commit_fragments(folder: str, fragments: Sequence[Any], schema: pa.Schema) -> None:
    """Commit fragments that are already in the folder as the new and only content of an index."""
    with lance_errors(folder):
        operation = lance().LanceOperation.Overwrite(schema, list(fragments))
        lance().LanceDataset.commit(folder, operation)


def open_dataset(folder: str) -> Any:
    """The newest version of an index as a dataset; raises if the folder is not an index."""
    if "://" not in folder and not (Path(folder) / "_versions").is_dir():
        raise TercetError(f"{folder}: is not an index; build one with `tercet index`.")
    with lance_errors(folder):
        dataset = lance().dataset(folder)
        metadata = metadata_of(dataset)
    if not {FORMAT_KEY, NAME_KEY, HASH_KEY} <= metadata.keys():
        raise TercetError(f"{folder}: is a Lance dataset, but not an index built by Tercet.")
    for key in (FORMAT_KEY, LAYERS_KEY):
        if not re.fullmatch("[0-9]{1,9}", metadata.get(key, "1")):
            raise TercetError(damaged_metadata(folder, key))
    types = {field.name: field.type for field in dataset.schema}
    has_all = {ID, TEXT, VECTOR} <= types.keys()
    if not has_all or not pa.types.is_fixed_size_list(types[VECTOR]):
        raise TercetError(f"{folder}: lacks a column of an index; build the index again.")
    if int(metadata[FORMAT_KEY]) > FORMAT:
        raise TercetError(
            f"{folder}: has format {metadata[FORMAT_KEY]}, and this release of Tercet reads up to "
            f"{FORMAT}; upgrade Tercet."
        )
    return dataset


@contextmanager
def writing(folder: str) -> Iterator[None]:
    """One writer at a time; on other storage than disks, users see to that themselves."""
    if "://" in folder:
        yield
        return
    path = Path(folder).resolve()
    with exclusive(path.with_name(f".{path.name}.lock")):
        yield


def is_index(folder: str) -> bool:
    """Whether a folder holds a Lance dataset."""
    return (Path(folder) / "_versions").is_dir()


def damaged_metadata(folder: str, key: str) -> str:
    return f"{folder}: its metadata `{key}` is damaged; build the index again."


def metadata_of(dataset: Any) -> dict[str, str]:
    stored: Mapping[bytes, bytes] = dataset.schema.metadata or {}
    return {key.decode(): value.decode() for key, value in stored.items()}


@contextmanager
def lance_errors(folder: str, where: str | None = None) -> Iterator[None]:
    """Raise errors of Lance as one sentence that names the index, or the condition `where`."""
    try:
        yield
    except TercetError:
        raise
    except BaseException as error:
        # A panic in Lance's Rust code, as for `?` in a condition, is not an Exception; damaged
        # files make its readers raise anything.
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        reason = _reason(error)
        if where is not None and not reason.startswith((FULL, MISSING)):
            sentence = f"`where` {shorten(where)!r} cannot be used: {reason}."
            raise ArgumentError(sentence, "where") from error
        raise TercetError(f"{folder}: {reason}.") from error


def _reason(error: BaseException) -> str:
    message = str(error)
    if "No space left on device" in message or "File too large" in message:
        return f"{FULL}; free some space and run it again"
    if "Not found" in message or "No such file" in message:
        missing = re.search(r"[\w/.-]+\.(?:lance|idx|manifest|arrow)", message)
        what = f" ({missing[0]})" if missing else ""
        return f"{MISSING}{what}; restore it or build the index again"
    # Lance names lines of its own source, which do not help its users.
    message = re.sub(r",? ?/?[\w/.-]+\.rs:\d+:\d+", "", message).strip(" ,.")
    return " ".join(message.split())[:300]
